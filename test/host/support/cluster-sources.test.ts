import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type ContainerStatus,
  describePods,
  hideIn,
  listClusterSources,
  readPodLogs,
  readSteps,
} from '../../../src/support/cluster-sources.ts'
import type { CommandRunner } from '../../../src/system/runner.ts'
import { createClusterStore, type NewCluster } from '../../../src/cluster/cluster-store.ts'
import {
  createRevisionStore,
  createSealed,
  type NewRevision,
} from '../../../src/cluster/desired/revisions.ts'
import { readSensitiveValues } from '../../../src/cluster/sensitive-values.ts'
import { createSecrets } from '../../../src/secrets/secrets.ts'
import { wantedCluster } from '../../support/cluster-parts.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'

const secret = 'planted canary 3801'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-support-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const file = (path: string, text: string) => {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), text)
}

/** Answers each program by the first rule that its command line contains. */
const runnerOf = (answers: Readonly<Record<string, string>>, asked: string[] = []): CommandRunner => ({
  async run(program, args) {
    const line = [program, ...args].join(' ')
    asked.push(line)
    const [, stdout] = Object.entries(answers).find(([part]) => line.includes(part)) ?? []
    return { exitCode: stdout === undefined ? 1 : 0, stdout: stdout ?? '', stderr: 'refused\n' }
  },
})

const pod = (name: string, containers: readonly ContainerStatus[]) => ({
  metadata: { namespace: 'shop', name },
  status: {
    phase: 'Running',
    startTime: '2026-11-28T10:00:00Z',
    conditions: [
      {
        ...{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' },
        ...{ message: `no ${secret}`, lastTransitionTime: '2026-11-28T10:01:00Z' },
      },
    ],
    containerStatuses: containers,
  },
})
const crashing = {
  ...{ name: 'web', ready: false, restartCount: 3 },
  state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } },
  lastState: { terminated: { reason: 'Error', exitCode: 7, finishedAt: '2026-11-28T10:05:00Z' } },
}

describe('pods with their last lines', () => {
  it('a container that crashes has its last lines and those before its last start, without a value of a variable', async () => {
    const asked: string[] = []
    const text = await describePods({ items: [pod('web-1', [crashing])] }, [secret], async (args) => {
      asked.push(args.join(' '))
      return `2026-11-28T10:05:00Z cannot log in with ${secret}\n2026-11-28T10:05:01Z password=hunter2 is wrong\n`
    })
    expect(asked).toEqual([
      'logs --namespace=shop web-1 --container=web --timestamps --tail=20',
      'logs --namespace=shop web-1 --container=web --timestamps --tail=20 --previous',
    ])
    expect(text).toContain('shop/web-1, Running, since 2026-11-28T10:00:00Z')
    expect(text).toContain('Ready=False, ContainersNotReady, no ********, since 2026-11-28T10:01:00Z')
    expect(text).toContain('container web, not ready, 3 restarts, waiting, CrashLoopBackOff, back-off 40s')
    expect(text).toContain('before: terminated, Error, exit code 7')
    expect(text).toContain('cannot log in with ********')
    expect(text).not.toContain(secret)
    expect(text).not.toContain('hunter2')
  })

  it('containers that run, and those that have done their work, have no lines', async () => {
    const containers = [
      { name: 'web', ready: true, restartCount: 0, state: { running: {} } },
      { name: 'init', ready: false, restartCount: 0, state: { terminated: { exitCode: 0 } } },
    ]
    const text = await describePods({ items: [pod('web-1', containers)] }, [], () =>
      Promise.reject(new Error('nothing should be asked')),
    )
    expect(text).toContain('No container is in trouble.')
  })

  it('at most 4 kB of the lines are shown, and a value at the cut is masked whole', async () => {
    const line = `${'x'.repeat(100)} ${secret}\n`
    for (let shift = 0; shift < secret.length; shift += 1) {
      const log = `${line.repeat(60)}${'y'.repeat(shift)}\n`
      const text = await describePods({ items: [pod('web-1', [crashing])] }, [secret], async () => log)
      const [, shown = ''] = text.split(/^==== .*$/m)
      expect(Buffer.byteLength(shown)).toBeLessThan(4_200)
      for (const part of ['planted', 'canary', '3801']) expect(text).not.toContain(part)
    }
  })

  it('an error of kubectl is in the place of the lines', async () => {
    const text = await describePods({ items: [pod('web-1', [crashing])] }, [secret], () =>
      Promise.reject(new Error(`no log for ${secret}`)),
    )
    expect(text).toContain('no log for ********')
  })

  it('without an API server the logs of the containers on the disk are shown, parts of a line put together', async () => {
    const head = '2026-11-28T10:05:00Z stderr'
    file('pods/kube-system_etcd-a_1/etcd/0.log', `${head} F old\n`)
    file(
      'pods/kube-system_etcd-a_1/etcd/1.log',
      `${head} P cannot use plant\n${head} P ed canary\n${head} F  3801 here\n${head} F the end\n`,
    )
    const text = await readPodLogs(join(folder, 'pods'), [secret])
    expect(text).toBe(`==== kube-system_etcd-a_1 etcd\n${head} cannot use ******** here\n${head} the end\n`)
  })
})

describe('the output of steps', () => {
  const step = (name: string, startedAt: number, output: string, exit?: object) => {
    const order = {
      program: '/node',
      args: ['step.cjs', 'kubernetes'],
      environment: { A: secret },
      startedAt,
    }
    file(`steps/${name}/order.json`, JSON.stringify(order))
    file(`steps/${name}/output`, output)
    if (exit) file(`steps/${name}/exit`, JSON.stringify(exit))
  }

  it('steps are shown with their ends, the last started one first, without a value of a variable', async () => {
    step('first-1', 1_000, 'done\n', { kind: 'exited', exitCode: 0, endedAt: 2_000, leftOutBytes: 0 })
    step('second-2', 3_000, `kubeadm does not take ${secret}\n`)
    const text = await readSteps(join(folder, 'steps'), [secret])
    expect(text).toBe(
      '==== second-2, kubernetes, started 1970-01-01T00:00:03.000Z, has not ended\nkubeadm does not take ********\n\n' +
        '==== first-1, kubernetes, started 1970-01-01T00:00:01.000Z, ended 1970-01-01T00:00:02.000Z, exit code 0\ndone\n\n',
    )
  })

  it('of a long output the end is shown', async () => {
    step('long-1', 1_000, `${'noise '.repeat(100)}\n`.repeat(1_000) + 'the end\n')
    const text = await readSteps(join(folder, 'steps'), [secret])
    expect(text.length).toBeLessThan(66_000)
    expect(text).toContain('bytes before are left out')
    expect(text).toMatch(/the end\n\n$/)
  })
})

describe('the sources of a cluster', () => {
  const options = { stateDirectory: '/nowhere', podLogs: '/nowhere' }
  const read = (sources: ReturnType<typeof listClusterSources>, name: string) =>
    sources.find((each) => each.name === name)!.read()

  it('without a cluster there are none', () => {
    expect(listClusterSources({ ...options, runner: runnerOf({}), sensitive: undefined })).toEqual([])
  })

  it('where the values of variables are not known, all of them are left out with the reason', async () => {
    const sensitive = new Error('the database is damaged')
    const sources = listClusterSources({ ...options, runner: runnerOf({}), sensitive })
    expect(sources.length).toBeGreaterThan(4)
    for (const source of sources)
      await expect(source.read()).rejects.toThrow(
        'left out, since the sensitive values of the cluster are not known: the database is damaged',
      )
  })

  it('the journal of the kubelet begins with the cluster, and has no value of a variable', async () => {
    const asked: string[] = []
    const runner = runnerOf({ '--unit=kubelet.service': `E1128 failed: ${secret}\n` }, asked)
    const sources = listClusterSources({ ...options, runner, sensitive: { since: 1_500, values: [secret] } })
    expect(await read(sources, 'kubelet.txt')).toBe('E1128 failed: ********\n')
    expect(asked[0]).toContain('--since=@2 ')
  })

  it('events of Kubernetes have no value of a variable', async () => {
    const runner = runnerOf({ 'get events': `TIME\n10:00 Failed ${secret}\n` })
    const sources = listClusterSources({ ...options, runner, sensitive: { since: 0, values: [secret] } })
    expect(await read(sources, 'kubernetes-events.txt')).toBe('TIME\n10:00 Failed ********\n')
  })

  it('an API server that cannot be asked is said in the file of the pods', async () => {
    const sources = listClusterSources({
      ...{ ...options, runner: runnerOf({}), sensitive: { since: 0, values: [secret] } },
    })
    expect(await read(sources, 'pods.txt')).toBe(
      'The API server could not be asked: refused\n\nNo container has left lines.\n',
    )
  })

  it('values are masked in a text of many megabytes too', () => {
    const line = `a line of the kubelet that says nothing\n`
    const text = `${line.repeat(50_000)}${secret}\n${line.repeat(50_000)}`
    const values = [
      secret,
      ...Array.from({ length: 30 }, (_, index) => `another value of a variable ${index}`),
    ]
    const shown = hideIn(text, values)
    expect(shown.length).toBe(text.length - secret.length + 8)
    expect(shown).not.toContain(secret)
  })
})

describe('the values of the cluster that are masked', () => {
  const secretBytes = Buffer.alloc(32, 1)
  const plant = (values: readonly (readonly string[])[]) => {
    const path = join(folder, 'edgehostd.db')
    const database = openDatabase(path, captureLog().log)
    const sealed = createSealed(createSecrets(secretBytes))
    const { kubernetes, node, ...wanted } = wantedCluster({})
    const common = {
      ...{ folder, posted: {}, mark: sealed.mark(''), at: 1_234 },
      summary: { kubernetes, node, definition: { name: 'shop', version: '1', sha256: '' } },
    } as unknown as Omit<NewCluster, 'sensitive'> & Omit<NewRevision, 'sensitive' | 'generation'>
    const [ofCluster = [], ...ofRevisions] = values
    createClusterStore(database, sealed).add({
      ...{ ...common, uid: wanted.uid, name: 'shop', generation: 1, sensitive: ofCluster },
    })
    for (const [index, sensitive] of ofRevisions.entries())
      createRevisionStore(database, sealed).add({
        ...{ ...common, by: 'ada', origin: 'create', outcome: 'good', scheduleAt: null, plain: undefined },
        ...{ generation: index + 1, sensitive },
      })
    return { path, close: database.close }
  }

  it('they are those of the cluster and of all its revisions, read while the daemon runs or not', () => {
    const { path, close } = plant([['one'], ['one', 'former'], ['next']])
    const found = { since: 1_234, values: ['one', 'former', 'next'] }
    expect(readSensitiveValues(path, secretBytes)).toEqual(found)
    close()
    expect(readSensitiveValues(path, secretBytes)).toEqual(found)
  })

  it('with another secret of the state folder they are not known', () => {
    const { path, close } = plant([['one']])
    expect(() => readSensitiveValues(path, Buffer.alloc(32, 2))).toThrow('sealed with another secret')
    close()
  })

  it('without a cluster there are none, and without a database they are not known', () => {
    const path = join(folder, 'edgehostd.db')
    expect(() => readSensitiveValues(path, secretBytes)).toThrow(/unable to open/)
    openDatabase(path, captureLog().log).close()
    expect(readSensitiveValues(path, secretBytes)).toBeUndefined()
  })
})
