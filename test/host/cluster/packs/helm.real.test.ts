import { readFileSync } from 'node:fs'
import { mkdtemp, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createReleaseAction } from '../../../../src/cluster/packs/releases.ts'
import { releaseBytes, secretBytes } from '../../../../src/cluster/prepare/helm.ts'
import { createRunner, type CommandStreamer } from '../../../../src/system/runner.ts'
import { chartArchive } from '../../../support/cluster-definitions.ts'
import { startKubernetesApi, type KubernetesApi } from '../../../support/kubernetes-api.ts'
import { isKitMissing } from '../../../support/kubernetes-kit.ts'
import type { Stored } from '../../../support/pack-world.ts'
import { makePodsReady, missImages } from '../../../support/played-pods.ts'
import { makeChart, webTemplate } from '../../../support/test-charts.ts'
import { waitFor } from '../../../support/wait-for.ts'
import { noise } from '../../../support/random.ts'

const messageOf = (work: Promise<unknown>) =>
  work.then(
    () => '',
    (error: unknown) => (error as Error).message,
  )

const groups = { configmaps: '/api/v1', deployments: '/apis/apps/v1' }

/** What helm keeps of a revision in a Secret: JSON in gzip in base64, and again in base64 as each Secret. */
const readRelease = (text: string) =>
  JSON.parse(gunzipSync(Buffer.from(Buffer.from(text, 'base64').toString(), 'base64')).toString()) as {
    readonly version: number
    readonly info: { readonly status: string }
  }

describe.skipIf(isKitMissing())('the action helm on a real API server', { timeout: 120_000 }, () => {
  let api: KubernetesApi
  let folder: string
  let chart: string
  let helm: string

  beforeAll(async () => {
    api = await startKubernetesApi()
    await api.startControllers()
    folder = await mkdtemp(join(tmpdir(), 'helm-'))
    helm = join(api.programs, 'helm')
    const templates = { 'web.yaml': webTemplate }
    chart = await makeChart({ helm, folder }, { name: 'web', version: '1.0.0', templates })
  })
  afterAll(() => api.stop())

  /** A release; each in a namespace of its own. */
  async function createRelease(release: string) {
    await api.ask('POST', '/api/v1/namespaces', { metadata: { name: release } })
    const values = join(folder, `${release}-values.yaml`)
    const order = {
      ...{ program: helm, kubeconfig: api.kubeconfig, release, namespace: release, values },
      ...{ home: join(folder, `${release}-home`), objects: join(folder, `${release}-objects.json`) },
      wanted: join(folder, `${release}-wanted.jsonl`),
    }
    const lines: string[] = []
    let count = 0
    /** Runs the action. @param kill whether the line of helm, once seen, is the end of helm */
    async function install(
      set: object,
      {
        timeoutMs = 30_000,
        killAt,
        chartFile = chart,
        // Another one each time: an equal one would not be installed again.
        digest = String((count += 1)),
      }: { timeoutMs?: number; killAt?: RegExp; chartFile?: string; digest?: string } = {},
    ) {
      await writeFile(values, JSON.stringify(set), { mode: 0o600 })
      const runner = createRunner()
      const killing: CommandStreamer = {
        stream: (program, args, options) => {
          let pid = 0
          return runner.stream(program, args, {
            ...options,
            onStarted: (started) => (pid = started),
            onLine(line, from) {
              if (args.includes('upgrade') && killAt?.test(line)) process.kill(pid, 'SIGKILL')
              options.onLine(line, from)
            },
          })
        },
      }
      lines.length = 0
      const action = createReleaseAction({ ...runner, ...killing })
      await action({ ...order, chart: chartFile, digest, timeoutMs }, (line) => void lines.push(line))
    }
    const web = {
      ...{ order, lines, install },
      history: async () => {
        const selector = encodeURIComponent(`owner=helm,name=${release}`)
        const { items } = (await api.ask(
          'GET',
          `/api/v1/namespaces/${release}/secrets?labelSelector=${selector}`,
        )) as { items: readonly { data: { release: string } }[] }
        return items
          .map(({ data }) => readRelease(data.release))
          .toSorted((one, other) => one.version - other.version)
          .map(({ version, info }) => `${version} ${info.status}`)
      },
      read: async (kind: 'configmaps' | 'deployments', name = release) =>
        (await api.ask('GET', `${groups[kind]}/namespaces/${release}/${kind}/${name}`)) as Stored | undefined,
      text: async () => (await web.read('configmaps'))?.data?.text,
      objects: () => JSON.parse(readFileSync(order.objects, 'utf8')) as unknown,
      makeReady: () =>
        waitFor(async () => expect(await makePodsReady(api, release)).toBeGreaterThan(0), 20_000),
    }
    return web
  }

  it('leaves a release alone that has the chart and the values, unless an object of it is gone', async () => {
    const web = await createRelease('same')
    await web.install({ replicas: 0, text: 'first' }, { digest: 'a' })
    const versions = async () => {
      const found = [await web.read('configmaps'), await web.read('deployments')]
      return found.map((each) => each?.metadata.resourceVersion)
    }
    const before = await versions()
    expect(before).not.toContain(undefined)
    await web.install({ replicas: 0, text: 'first' }, { digest: 'a' })
    expect(await web.history()).toEqual(['1 deployed'])
    expect(await versions()).toEqual(before)
    expect(web.lines).toEqual(['the Helm release same/same has this chart and these values already'])
    await api.ask('DELETE', '/api/v1/namespaces/same/configmaps/same')
    await web.install({ replicas: 0, text: 'first' }, { digest: 'a' })
    expect(await web.text()).toBe('first')
  })

  it('goes back by a rollback to a revision that helm still has, and installs again one that helm has forgotten', async () => {
    const web = await createRelease('back')
    await web.install({ replicas: 0, text: 'first' }, { digest: 'a' })
    await web.install({ replicas: 0, text: 'second' }, { digest: 'b' })
    await expect(
      web.install({ replicas: 1, text: 'third' }, { digest: 'c', timeoutMs: 1_000 }),
    ).rejects.toThrow()
    await web.install({ replicas: 0, text: 'values are not read' }, { digest: 'b' })
    expect(await web.text()).toBe('second')
    expect(await web.history()).toEqual(['1 superseded', '2 superseded', '3 failed', '4 deployed'])
    await web.install({ replicas: 0, text: 'values are not read' }, { digest: 'b' })
    await web.install({ replicas: 0, text: 'values are not read' }, { digest: 'a' })
    expect(await web.text()).toBe('first')
    expect((await web.history()).at(-1)).toBe('5 deployed')
    for (const revision of [2, 4])
      await api.ask('DELETE', `/api/v1/namespaces/back/secrets/sh.helm.release.v1.back.v${revision}`)
    await web.install({ replicas: 0, text: 'again' }, { digest: 'b' })
    expect(await web.text()).toBe('again')
  })

  it('installs a chart, waits for its workloads, and writes down its objects', async () => {
    const web = await createRelease('one')
    const installed = web.install({ replicas: 1, text: 'first' })
    await waitFor(() => expect(web.lines.join()).toContain('waits: Deployment is not ready: one/one'), 20_000)
    await web.makeReady()
    await installed
    expect(await web.history()).toEqual(['1 deployed'])
    expect(web.objects()).toEqual([
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'one', namespace: 'one' },
      { apiVersion: 'apps/v1', kind: 'Deployment', name: 'one', namespace: 'one' },
    ])
    await expect(stat(web.order.home)).rejects.toThrow('ENOENT')
  })

  it('upgrades with the new values alone, also where these are fewer', async () => {
    const web = await createRelease('fewer')
    await web.install({ replicas: 0, text: 'first' })
    const templates = { 'web.yaml': webTemplate.replace('{{ .Values.replicas }}', '0') }
    const newer = await makeChart({ helm, folder }, { name: 'web', version: '2.0.0', templates })
    await web.install({}, { chartFile: newer })
    expect([await web.history(), await web.text()]).toEqual([['1 superseded', '2 deployed'], ''])
  })

  it('names the workload that did not become available, and the failed release stays', async () => {
    const web = await createRelease('late')
    await expect(web.install({ replicas: 1, text: 'first' }, { timeoutMs: 3_000 })).rejects.toThrow(
      'the Helm release late/late could not be installed: context deadline exceeded; last: Deployment is not ready: late/late. 0 out of 1 expected pods are ready',
    )
    expect([await web.history(), await web.text()]).toEqual([['1 failed'], 'first'])
  })

  it('says why the pods of a chart do not run', async () => {
    const web = await createRelease('missing')
    const failing = messageOf(web.install({ replicas: 1, text: '' }, { timeoutMs: 6_000 }))
    await waitFor(async () => expect(await missImages(api, 'missing')).toBeGreaterThan(0), 20_000)
    expect(await failing).toMatch(
      /; Deployment missing\/missing: 0 of 1 pods are available; pod missing-\S+: container web: ImagePullBackOff: Back-off pulling image "example.com\/web:1"$/,
    )
  })

  it('installs over a release that failed', async () => {
    const web = await createRelease('again')
    await expect(web.install({ replicas: 1, text: 'first' }, { timeoutMs: 1_000 })).rejects.toThrow()
    await web.install({ replicas: 0, text: 'second' })
    expect([await web.history(), await web.text()]).toEqual([['1 superseded', '2 deployed'], 'second'])
  })

  it('installs anew where the first installation failed before hooks that an upgrade does not run', async () => {
    const hook = (events: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Name }}-hook", annotations: {helm.sh/hook: "${events}"}}\n`
    const chartOf = (name: string, events: string) =>
      makeChart(
        { helm, folder },
        { name, version: '1.0.0', templates: { 'web.yaml': webTemplate, 'hook.yaml': hook(events) } },
      )
    const [once, always] = [await createRelease('once'), await createRelease('always')]
    for (const [web, chartFile, revisions] of [
      [once, await chartOf('hooked', 'post-install'), ['1 deployed']],
      [always, await chartOf('hooked-always', 'post-install,post-upgrade'), ['1 superseded', '2 deployed']],
    ] as const) {
      expect(await messageOf(web.install({ replicas: 1 }, { timeoutMs: 1_000, chartFile }))).not.toBe('')
      await web.install({ replicas: 0 }, { chartFile })
      expect(await web.history()).toEqual(revisions)
      expect(await web.read('configmaps', `${web.order.release}-hook`)).toBeDefined()
    }
    expect(once.lines).toContainEqual(expect.stringMatching(/^cured: .* before its hooks were done/))
  })

  it('uninstalls a first installation that kill -9 has cut off, and installs it', async () => {
    const web = await createRelease('cut')
    await expect(web.install({ replicas: 1, text: 'first' }, { killAt: /is not ready/ })).rejects.toThrow(
      'helm was ended by SIGKILL',
    )
    expect(await web.history()).toEqual(['1 pending-install'])
    await web.install({ replicas: 0, text: 'second' })
    expect([await web.history(), await web.text()]).toEqual([['1 deployed'], 'second'])
    expect(web.lines[0]).toBe(
      'cured: the Helm release cut/cut was interrupted in its first installation; it was uninstalled',
    )
  })

  it('rolls back an upgrade that kill -9 has cut off, and upgrades again', async () => {
    const web = await createRelease('upgraded')
    await web.install({ replicas: 0, text: 'first' })
    await expect(web.install({ replicas: 1, text: 'second' }, { killAt: /is not ready/ })).rejects.toThrow(
      'SIGKILL',
    )
    expect(await web.history()).toEqual(['1 deployed', '2 pending-upgrade'])
    await web.install({ replicas: 0, text: 'third' })
    expect([(await web.history()).at(-1), await web.text()]).toEqual(['4 deployed', 'third'])
    expect(web.lines[0]).toBe(
      'cured: an upgrade of the Helm release upgraded/upgraded was interrupted; it was rolled back to revision 1',
    )
  })

  it('cures an upgrade that was cut off when nothing of the release had ever been deployed', async () => {
    const web = await createRelease('never')
    await expect(web.install({ replicas: 1, text: 'first' }, { timeoutMs: 1_000 })).rejects.toThrow()
    await expect(web.install({ replicas: 1, text: 'second' }, { killAt: /is not ready/ })).rejects.toThrow(
      'SIGKILL',
    )
    expect(await web.history()).toEqual(['1 failed', '2 pending-upgrade'])
    await web.install({ replicas: 0, text: 'third' })
    expect([(await web.history()).at(-1), await web.text()]).toEqual(['4 deployed', 'third'])
  })

  // Lines of helm 3.20 with --debug, in the order in which they come; helm ends at one of them.
  const moments: readonly (readonly [string, RegExp, number])[] = [
    ['before it has stored anything', /CHART PATH/, 0],
    ['when the first revision is stored', /creating 2 resource/, 0],
    ['when all objects are made', /beginning wait/, 0],
    ['before an upgrade', /preparing upgrade/, 1],
    ['when the new revision is stored', /creating upgraded release/, 1],
    ['between the objects of an upgrade', /checking 2 resources|Patch /, 1],
    ['when all objects are changed', /beginning wait/, 1],
    ['when the former revision is superseded', /updating status for upgraded release/, 1],
  ]
  it.each(moments)('installs the last values after kill -9 %s', async (moment, killAt, upgradesBefore) => {
    const web = await createRelease(moment.replaceAll(' ', '-'))
    for (let done = 0; done < upgradesBefore; done++) await web.install({ replicas: 0, text: 'before' })
    // After its last lines helm may end before the signal is there; then it is begun again.
    await waitFor(
      async () => {
        const killed = web.install({ replicas: 0, text: `killed ${Date.now()}` }, { killAt })
        expect(await messageOf(killed)).toContain('SIGKILL')
      },
      { timeout: 60_000 },
    )
    await web.install({ replicas: 0, text: 'last' })
    expect([await web.text(), (await web.history()).at(-1)]).toEqual([
      'last',
      expect.stringContaining('deployed'),
    ])
  })

  it('keeps a release in a Secret of the size that pre-flight computes, and refuses one that is larger than a Secret may be', async () => {
    const configMap = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\n'
    /** A chart with a file that cannot be compressed. */
    const write = async (bytes: number) => {
      const chartFile = join(folder, `large-${bytes}.tgz`)
      const files = { 'templates/a.yaml': configMap, 'files/a': noise(bytes).toString('base64') }
      await writeFile(chartFile, chartArchive('large', files))
      return { chartFile, computed: await releaseBytes(chartFile, [configMap, '{}']) }
    }
    const large = await createRelease('large')
    const fits = await write(500_000)
    await large.install({}, { chartFile: fits.chartFile })
    const { data } = (await api.ask(
      'GET',
      '/api/v1/namespaces/large/secrets/sh.helm.release.v1.large.v1',
    )) as { data: { release: string } }
    const stored = Buffer.from(data.release, 'base64').length
    expect(fits.computed / stored).toBeGreaterThan(0.98)
    expect(fits.computed).toBeLessThanOrEqual(stored)

    const tooLarge = await write(800_000)
    expect(tooLarge.computed).toBeGreaterThan(secretBytes)
    const other = await createRelease('larger')
    expect(await messageOf(other.install({}, { chartFile: tooLarge.chartFile }))).toMatch(
      /Too long: may not be more than 1048576 bytes/,
    )
  })

  it('says what a bad chart does wrong, in one line', async () => {
    const web = await createRelease('bad')
    const templates = {
      'bad.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }\ndata: { a: {{ .Values.a.b }} }\n',
    }
    const bad = await makeChart({ helm, folder }, { name: 'bad', version: '1.0.0', templates })
    const failed = await messageOf(web.install({}, { chartFile: bad }))
    expect(failed).toMatch(/could not be installed: .*nil pointer evaluating interface \{\}\.b/)
    expect(failed).not.toContain('\n')
  })
})
