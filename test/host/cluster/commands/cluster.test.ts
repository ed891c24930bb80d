import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  applicationsOf,
  beginStream,
  detailsOf,
  eventOf,
  json,
  streamOf,
} from '../../../support/played-cluster.ts'
import { createPlayedCtl, type Answers } from '../../../support/played-ctl.ts'

const cluster = '/v1/edge-mgmt/cluster'
const stream = 'GET /v1/edge-mgmt/events/stream'
const uid = '3f2c5e2e-93a4-4c43-8f0e-000000000001'

const world = createPlayedCtl()
const { ctl, play, run } = world
afterAll(() => world.stop())

const problems = [
  { code: 'ImageMissing', severity: 'error', message: 'busybox:1 is missing', pack: 'p1/web' },
  { code: 'HostMemory', severity: 'warning', message: 'there is little memory' },
]

describe('cluster create', () => {
  it.each([
    ['YAML', 'metadata:\n  name: shop\n  labels: { site: north }\n'],
    ['JSON', '{"metadata":{"name":"shop","labels":{"site":"north"}}}'],
  ])('cluster create sends a file in %s as JSON, with a key for repetitions', async (_form, text) => {
    const ended = await run({ [`POST ${cluster}`]: json(201, { uid }) }, ['create', '-'], text)
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toContain(uid)
    const [post] = ended.asked
    expect(JSON.parse(post?.body ?? '')).toEqual({ metadata: { name: 'shop', labels: { site: 'north' } } })
    expect(post?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('cluster create lists every problem of a failed pre-flight, and ends with 1', async () => {
    const refusal = { code: 'PreflightFailed', message: '1 error was found', details: { problems } }
    const ended = await run({ [`POST ${cluster}`]: json(400, refusal) }, ['create', '-'], '{}')
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toBe('edgehostctl: 1 error was found (PreflightFailed)\n')
    expect(ended.stdout).toMatch(
      /^SEVERITY +CODE +WHERE +PROBLEM\nerror +ImageMissing +web +busybox:1 is missing\n/,
    )
    expect(ended.stdout).toMatch(/^warning +HostMemory/m)
  })

  it('cluster create --dry-run shows problems and plan; its exit code says whether it is possible', async () => {
    const plan = [{ key: 'kubeadm-init', title: 'Set up the control plane', timeoutSeconds: 600 }]
    for (const isPossible of [true, false]) {
      const reply = { isPossible, problems: problems.slice(isPossible ? 1 : 0), plan: isPossible ? plan : [] }
      const ended = await run({ [`POST ${cluster}`]: json(200, reply) }, ['create', '-', '--dry-run'], '{}')
      expect(ended.exitCode).toBe(isPossible ? 0 : 1)
      expect(ended.asked[0]?.url).toBe(`POST ${cluster}?dryRun=true`)
      expect(ended.stdout).toMatch(/HostMemory/)
      expect(/Set up the control plane +- +10 min/.test(ended.stdout)).toBe(isPossible)
    }
  })

  it('cluster create --dry-run lists the content that is needed, with what the host has of it and why', async () => {
    const need = {
      kind: 'image',
      name: 'registry.k8s.io/pause:3.10.1',
      origin: 'Kubernetes',
      isRequired: true,
    }
    const needs = [
      { ...need, isThere: true, sizeBytes: 250_000, reason: 'containerd starts it for every pod' },
      { ...need, kind: 'program', name: 'kubelet', version: '1.34.4', isThere: false },
      {
        ...need,
        kind: 'program',
        name: 'etcdctl',
        isRequired: false,
        isThere: false,
        reason: 'for administrators',
      },
    ]
    const reply = { isPossible: false, problems, plan: [], needs }
    const { stdout } = await run(
      { [`POST ${cluster}`]: json(200, reply) },
      ['create', '-', '--dry-run'],
      '{}',
    )
    expect(stdout).toMatch(/^ *Content: not on this host: 1 program$/m)
    expect(stdout).toMatch(
      /^image +registry\.k8s\.io\/pause:3\.10\.1 +Kubernetes +250 kB +yes +containerd starts/m,
    )
    expect(stdout).toMatch(/^program +kubelet 1\.34\.4 +Kubernetes +- +no/m)
  })

  it('cluster create names a file that is missing, or is not YAML, before it asks the host', async () => {
    const missing = await run({}, ['create', '/no/where'])
    expect(missing).toMatchObject({ exitCode: 2, asked: [] })
    expect(missing.stderr).toMatch(/FILE: \/no\/where cannot be read: no such file/)
    const broken = await run({}, ['create', '-'], 'metadata:\n  name: [shop\n')
    expect(broken).toMatchObject({ exitCode: 2, asked: [] })
    expect(broken.stderr).toMatch(/FILE: - is not YAML or JSON: .*line 3/s)
  })

  it.each([
    ['bytes that are no text', Buffer.from([0x67, 0xff, 0xfe, 0x1b, 0x5b]), 'is not text in UTF-8'],
    ['text with a NUL', 'kind: a\0b', 'is not text in UTF-8'],
    ['YAML with an error', 'metadata:\n  name: [shop\nhunter2: x\n', 'is not YAML or JSON: .* at line 3'],
    ['a stray token', 'a: "b" hunter2 \n', 'is not YAML or JSON: .* at line 1'],
    ['two documents', 'a: hunter2\n---\nb: 2\n', 'has more than one YAML document; write one'],
    ['nothing', '', 'is empty; write the body of POST /v1/edge-mgmt/cluster'],
    ['only a comment', '# hunter2\n', 'is empty; write'],
    ['a sentence', 'hunter2', 'is not a mapping such as'],
    ['a list', '[hunter2]', 'is not a mapping such as'],
  ])('cluster create refuses %s without showing any of it, and asks no host', async (_what, content, why) => {
    const file = join(ctl.home, 'cluster.yaml')
    writeFileSync(file, content)
    const ended = await run({}, ['create', file])
    expect(ended).toMatchObject({ exitCode: 2, stdout: '', asked: [] })
    expect(ended.stderr).toMatch(new RegExp(`^edgehostctl: FILE: .*cluster.yaml ${why}.*\n$`))
    expect(ended.stderr).not.toMatch(/hunter2|\\u/)
  })

  it('a tag that YAML does not know causes no warning of the library', async () => {
    const ended = await run(
      { [`POST ${cluster}`]: json(201, { uid }) },
      ['create', '-'],
      'metadata: !x {name: a}\n',
    )
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it('cluster create --wait shows the steps and ends with 0 when the cluster runs', async () => {
    let isRunning = false
    const ended = await run(
      {
        [`POST ${cluster}`]: json(201, { uid }),
        [`GET ${cluster}/details`]: (...args) =>
          json(
            200,
            detailsOf(isRunning ? {} : { clusterState: 'Provisioning', phase: 'Provisioning' }),
          )(...args),
        [stream]: (_request, response) => {
          beginStream(response)
          response.write(':\n\n')
          // The cluster ran before, long ago: stored events do not decide.
          response.write(streamOf(eventOf(1, 'Running', 'ran')))
          setTimeout(() => {
            isRunning = true
            response.write(
              streamOf(
                ...[eventOf(2, 'StepStarted', 'Set up', 'init'), eventOf(64, 'StepDone', 'Set up', 'init')],
                eventOf(65, 'Running', 'runs'),
              ),
            )
          }, 200)
        },
      },
      ['create', '-', '--wait'],
      '{}',
    )
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^2026-01-31 08:00:02Z {3}StepStarted {14}Set up$/m)
    expect(ended.stdout).toMatch(/^2026-01-31 08:01:04Z {3}StepDone {17}Set up \(1 min 2 s\)$/m)
    expect(ended.stdout.trimEnd().split('\n').at(-1)).toMatch(/Running +runs$/)
  })

  it('cluster create --wait ends with 1 and the reason when a step has failed', async () => {
    const failed = detailsOf({ clusterState: 'Error', phase: 'Failed', clusterStateReason: 'kubeadm failed' })
    const ended = await run(
      {
        [`POST ${cluster}`]: json(201, { uid }),
        [`GET ${cluster}/details`]: json(200, failed),
        [stream]: (_request, response) =>
          void beginStream(response).write(
            streamOf(
              eventOf(1, 'StepFailed', 'kubeadm failed', 'init'),
              eventOf(2, 'Failed', 'kubeadm failed'),
            ),
          ),
      },
      ['create', '-', '--wait'],
      '{}',
    )
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(/kubeadm failed; edgehostd tries again/)
    expect(ended.stdout).toMatch(/ ! StepFailed/)
  })
})

describe('cluster watch', () => {
  const watching = { [`GET ${cluster}/details`]: json(200, detailsOf()) }

  it('cluster watch continues after the last event when the connection breaks, the daemon stops, or it is away', async () => {
    const seen: (string | undefined)[] = []
    const ended = await run(
      {
        ...watching,
        [stream]: (request, response) => {
          const last = request.headers['last-event-id'] as string | undefined
          seen.push(last)
          if (seen.length !== 4) beginStream(response)
          const end = 'event: end\ndata: {"code":"NotReady","message":"the daemon stops; connect again"}\n\n'
          if (last === undefined) {
            // Cut off in the middle of the second event.
            response.write(`${streamOf(eventOf(1, 'StepProgress', 'one'))}id: 2\ndata: {"meta`)
            setTimeout(() => response.destroy(), 50)
          } else if (last === '1') response.end(`${streamOf(eventOf(2, 'StepProgress', 'two'))}${end}`)
          else if (seen.length === 3) response.destroy()
          else if (seen.length === 4)
            json(503, { code: 'NotReady', message: 'it starts' })(request, response, '')
          else response.end(streamOf(eventOf(3, 'Deleted', 'three')).replaceAll('\n', '\r\n'))
        },
      },
      ['watch'],
    )
    expect(ended.exitCode).toBe(0)
    expect(ended.stdout.split('\n').map((line) => line.split(' ').at(-1))).toEqual([
      'one',
      'two',
      'three',
      '',
    ])
    expect(seen).toEqual([undefined, '1', '2', '2', '2'])
  })

  it('cluster watch -o json writes an event a line', async () => {
    const events = [eventOf(1, 'StepProgress', 'line\nbreak'), eventOf(2, 'Deleted', 'gone')]
    const ended = await run(
      { ...watching, [stream]: (_request, response) => void beginStream(response).end(streamOf(...events)) },
      ['watch', '-o', 'json'],
    )
    expect(
      ended.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(events)
  })

  it('cluster watch ends when the session has ended, and says how to log in', async () => {
    const end = 'event: end\ndata: {"code":"Unauthenticated","message":"the session has ended"}\n\n'
    const ended = await run(
      { ...watching, [stream]: (_request, response) => void beginStream(response).end(end) },
      ['watch'],
    )
    expect(ended.exitCode).toBe(4)
    expect(ended.stderr).toMatch(/the session has ended/)
  })

  it('a message of a server cannot move the cursor of a terminal', async () => {
    const event = eventOf(1, 'Deleted', 'red \u001b[31m text\nand a line')
    const ended = await run(
      { ...watching, [stream]: (_request, response) => void beginStream(response).end(streamOf(event)) },
      ['watch'],
    )
    expect(ended.stdout).not.toContain('\u001b')
    expect(ended.stdout.trimEnd().split('\n')).toHaveLength(1)
  })

  it('cluster watch is ended by Ctrl-C as the shell expects it', async () => {
    const path = await play({
      ...watching,
      [stream]: (_request, response) =>
        void beginStream(response).write(streamOf(eventOf(1, 'StepProgress', 'one'))),
    })
    const program = spawn(process.execPath, [ctl.program, `--socket=${path}`, 'cluster', 'watch'])
    program.stdout.once('data', () => program.kill('SIGINT'))
    // A shell gives 130 for a program that SIGINT has ended.
    expect(await once(program, 'exit')).toEqual([null, 'SIGINT'])
  })

  it('on a terminal cluster watch shows how long the revision has until it is taken back', async () => {
    const deadline = { timestamp: '2026-01-31T08:01:50.000Z', leftSeconds: 100, action: 'takenBack' as const }
    const paths: (string | undefined)[] = []
    let isShown = false
    const path = await play({
      [`GET ${cluster}/details`]: json(200, detailsOf({ deadline })),
      [stream]: (request, response) => {
        paths.push(request.url)
        beginStream(response).write('event: cluster\ndata: {"state":{},"sum":"a","paths":[]}\n\n')
        const ended = setInterval(() => {
          if (!isShown) return
          clearInterval(ended)
          response.end(streamOf(eventOf(1, 'Deleted', 'gone')))
        }, 20)
      },
    })
    const command = `'${process.execPath}' '${ctl.program}' --socket='${path}' cluster watch`
    const program = spawn('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'])
    let shown = ''
    program.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text
      isShown ||= /taken back in 1 min (40|39) s/.test(shown)
    })
    expect(await once(program, 'exit')).toEqual([0, null])
    expect(shown).toContain('gone')
    expect(paths).toEqual(['/v1/edge-mgmt/events/stream?states=true'])
  })

  it.each(['get', 'watch', 'kubeconfig', 'delete --yes'])(
    'cluster %s says that there is no cluster',
    async (words) => {
      const ended = await run({}, words.split(' '))
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(ended.stderr).toMatch(/this host has no cluster/)
    },
  )
})

describe('cluster get, events, kubeconfig and delete', () => {
  it('cluster get shows state, nodes and the steps that are not done', async () => {
    const details = detailsOf({
      ...{ clusterState: 'Error', phase: 'Failed', clusterStateReason: 'no room' },
      health: { status: 'Unhealthy', reason: 'web is down' },
      steps: [
        { key: 'a', title: 'Record the host', state: 'done', failures: 0 },
        { key: 'b', title: 'Pull the images', state: 'failed', failures: 2, reason: 'no room' },
      ],
    })
    const answers = {
      [`GET ${cluster}/details`]: json(200, details),
      [`GET ${cluster}/applications`]: json(200, applicationsOf('Failed', 'helm gave up')),
    }
    const ended = await run(answers, ['get'])
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(/State: Error \(Failed\): no room$/m)
    expect(ended.stdout).toMatch(/Health: Unhealthy: web is down$/m)
    expect(ended.stdout).toMatch(/^Pull the images +failed +2 +- +no room$/m)
    expect(ended.stdout).toMatch(/^web +2\.1\.0 +addon +Failed +helm gave up$/m)
    expect(ended.stdout).not.toContain('Record the host')
    const asJson = await run(answers, ['get', '-o', 'json'])
    expect(asJson.stdout).toContain('"clusterState": "Error"')
  })

  it('cluster events passes on its options and says when Kubernetes did not answer', async () => {
    const reply = {
      items: [eventOf(1, 'StepFailed', 'no room')],
      listmeta: { continue: '', count: 1, limit: 1, offset: 1 },
      kubernetes: { state: 'failed', message: 'connection refused' },
    }
    const ended = await run({ [`GET ${cluster}/events`]: json(200, reply) }, [
      ...['events', '--namespace=shop', '--filter', 'severity=Warning', '--limit=5'],
    ])
    expect(ended.exitCode).toBe(0)
    expect(ended.stdout).toMatch(
      /^TIME +SEVERITY +REASON +OBJECT +FROM +MESSAGE\n2026-01-31 08:00:01Z +Warning +StepFailed/,
    )
    expect(ended.stderr).toMatch(/could not be read: connection refused/)
    const url = new URL(ended.asked.at(-1)?.url.split(' ')[1] ?? '', 'http://host')
    expect(Object.fromEntries(url.searchParams)).toEqual({
      ...{ filters: 'severity=Warning', namespace: 'shop', limit: '5' },
    })
  })

  it('only cluster kubeconfig asks for the kubeconfig, whose delivery is audited', async () => {
    const gone = json(404, { code: 'NotFound', message: 'no cluster' })
    const answers: Answers = {
      [`POST ${cluster}`]: json(201, { uid }),
      [`DELETE ${cluster}`]: (_request, response) => void response.writeHead(204).end(),
      [`GET ${cluster}/details`]: json(200, detailsOf({ kubeconfig: 'secret' })),
      [`GET ${cluster}/applications`]: json(200, applicationsOf('Failed', 'helm gave up')),
      [stream]: (_request, response) =>
        void beginStream(response).end(
          streamOf(eventOf(1, 'Running', 'runs'), eventOf(2, 'Deleted', 'is gone')),
        ),
    }
    const commands = [['get'], ['watch'], ['create', '-', '--wait'], ['delete', '--yes'], ['kubeconfig']]
    for (const args of commands) {
      const { asked } = await run(answers, args, '{}')
      const reads = asked.map(({ url }) => url).filter((url) => url.startsWith(`GET ${cluster}/details`))
      expect(new Set(reads), args[0]).toEqual(
        new Set([`GET ${cluster}/details${args[0] === 'kubeconfig' ? '' : '?kubeconfig=false'}`]),
      )
    }
    const { asked } = await run({ ...answers, [`GET ${cluster}/details`]: gone }, ['kubeconfig'])
    expect(asked).toHaveLength(1)
  })

  it('cluster kubeconfig writes a file that only its user may read', async () => {
    const kubeconfig = 'apiVersion: v1\nkind: Config\n'
    const answers = { [`GET ${cluster}/details`]: json(200, detailsOf({ kubeconfig })) }
    const file = join(ctl.home, 'kubeconfig')
    writeFileSync(file, 'an older one')
    const ended = await run(answers, ['kubeconfig', `--file=${file}`])
    expect(ended).toMatchObject({ exitCode: 0, stdout: '' })
    expect(readFileSync(file, 'utf8')).toBe(kubeconfig)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect((await run(answers, ['kubeconfig'])).stdout).toBe(kubeconfig)
  })

  it('cluster kubeconfig says why there is none', async () => {
    for (const [role, why] of [
      ['admin', 'the control plane is not set up yet'],
      ['viewer', 'the kubeconfig is for administrators of the host, and ada is not one'],
    ] as const) {
      const answers = {
        [`GET ${cluster}/details`]: json(200, detailsOf()),
        'GET /v1/users/current': json(200, { userName: 'ada', role }),
      }
      const ended = await run(answers, ['kubeconfig'])
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(ended.stderr).toContain(why)
    }
  })

  it('cluster delete deletes nothing without a yes', async () => {
    const current = '/v1/edge-mgmt/edgehosts/current'
    const answersOf = (managementMode: string) => ({
      [`GET ${cluster}/details`]: json(200, detailsOf()),
      [`GET ${current}`]: json(200, { spec: { managementMode } }),
    })
    const ended = await run(answersOf('local'), ['delete'])
    expect(ended.exitCode).toBe(2)
    expect(ended.stderr).toMatch(/The cluster shop .*add --yes/s)
    expect(ended.stderr).not.toContain('platform')
    expect(ended.asked.map(({ url }) => url)).toEqual([
      `GET ${cluster}/details?kubeconfig=false`,
      `GET ${current}`,
    ])
    const managed = await run(answersOf('central'), ['delete'])
    expect(managed.stderr).toMatch(
      /The cluster shop .*The platform manages it and still wants it.*add --yes/s,
    )
  })

  it('cluster delete --yes --wait shows what happens since the deletion, and ends when the cluster is gone', async () => {
    let isGone = false
    const ended = await run(
      {
        [`GET ${cluster}/details`]: (...args) =>
          isGone
            ? json(404, { code: 'NotFound', message: 'none' })(...args)
            : json(200, detailsOf())(...args),
        [`DELETE ${cluster}`]: (_request, response) => void response.writeHead(204).end(),
        [stream]: (_request, response) => {
          beginStream(response)
          // The stream begins with what was before.
          response.write(
            streamOf(
              ...[eventOf(1, 'Accepted', 'comes'), eventOf(2, 'StepStarted', 'Set up', 'init')],
              ...[eventOf(3, 'Running', 'runs'), eventOf(4, 'Deleting', 'goes')],
            ),
          )
          setTimeout(() => {
            isGone = true
            response.write(streamOf(eventOf(5, 'Deleted', 'gone')))
          }, 100)
        },
      },
      ['delete', '--yes', '--wait'],
    )
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout.match(/\w+$/gm)).toEqual(['goes', 'gone'])
    expect(ended.asked.map(({ url }) => url)).toContain(`DELETE ${cluster}`)
  })
})
