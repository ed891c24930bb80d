import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { execa } from 'execa'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { noReserve } from '../../support/content-uploads.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { createLayout, type TestLayout } from '../../support/layouts.ts'
import { contentProgram } from '../../support/programs.ts'
import { type TestEdgeOptions } from '../../support/test-edge.ts'
import { minuteMs } from '../../support/turning-clock.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { noise } from '../../support/random.ts'

// The defaults of api.rateLimits.
const defaultRates = {
  ...{ enabled: true, requestsPerSecond: 10, burst: 5, trackedKeys: 65_536, resources: [] },
  login: { requestsPerSecond: 2, burst: 5 },
  blobs: { requestsPerSecond: 500, burst: 5 },
}

/** The network between a workstation and a host, which a test cuts. */
async function createNetwork(port: () => number) {
  const open = new Set<Socket>()
  let isCut = false
  let refused = 0
  let cutAt = Infinity
  let passed = 0
  const server = createServer((near) => {
    near.on('error', () => undefined)
    if (isCut) {
      refused += 1
      near.destroy()
      return
    }
    const far = connect(port(), '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          open.delete(socket)
          other.destroy()
        })
      socket.pipe(other)
    }
    near.on('data', ({ length }: Buffer) => {
      passed += length
      if (passed < cutAt) return
      cutAt = Infinity
      cut()
    })
  })
  const cut = () => {
    isCut = true
    for (const socket of open) socket.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    /** Cuts all connections when so many more bytes have been sent to the host. */
    cutAfter: (bytes: number) => void (cutAt = passed + bytes),
    isCut: () => isCut,
    /** Attempts while it was cut. */
    refused: () => refused,
    mend: () => void (isCut = false),
    stop() {
      cut()
      server.close()
    },
  }
}

let ctl: Ctl
let work: string
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'edgehostd-ctl-remote-'))
})
afterAll(() => rmSync(work, { recursive: true, force: true }))

let wire: WireEdge
let network: Awaited<ReturnType<typeof createNetwork>>
let stateDirectory: string
async function start(options: TestEdgeOptions = {}) {
  wire = await createWireEdge({
    ...{ contentProgram: contentProgram(), content: noReserve, stateDirectory },
    ...options,
  })
}
beforeEach(async () => {
  ctl = createCtl()
  stateDirectory = mkdtempSync(join(work, 'state-'))
  network = await createNetwork(() => wire.port)
})
afterEach(async () => {
  network.stop()
  await wire.stop()
  rmSync(ctl.home, { recursive: true })
})

const target = () => ['--host', `127.0.0.1:${network.port}`]
async function logIn(user: string) {
  const { fingerprint256 } = new X509Certificate(wire.cert)
  const ended = await ctl.run(
    [...target(), '--fingerprint', fingerprint256, 'login', user, '--password-stdin'],
    `${user} pass\n`,
  )
  expect(ended).toMatchObject({ exitCode: 0 })
}
const kept = () => {
  const folder = join(ctl.home, '.config/edgehostctl/sessions')
  const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return readFileSync(join(folder, file), 'utf8')
}

interface Ended {
  readonly exitCode: number | undefined
  readonly stderr: string
  readonly sent: { uid: string; isNew: boolean; sentBytes: number }
}
async function upload(path: string): Promise<Ended> {
  const { exitCode, stdout, stderr } = await execa(
    process.execPath,
    [ctl.program, ...target(), 'content', 'upload', path, '-o', 'json'],
    { reject: false, extendEnv: false, env: { HOME: ctl.home }, stdin: 'ignore', timeout: 60_000 },
  )
  return { exitCode, stderr, sent: JSON.parse(stdout || '{}') as Ended['sent'] }
}

const noisyText = (bytes: number) => noise(bytes / 2).toString('hex')
/** A layout of an image with these layers. */
function layoutOf(layers: readonly string[]): TestLayout {
  const layout = createLayout()
  layout.list(layout.image({ layers: [...layers] }))
  return layout
}
function writeFolder(layout: TestLayout): string {
  const folder = mkdtempSync(join(work, 'layout-'))
  mkdirSync(join(folder, 'blobs', 'sha256'), { recursive: true })
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  writeFileSync(join(folder, 'index.json'), layout.indexFile())
  for (const [hex, bytes] of layout.blobs) writeFileSync(join(folder, 'blobs', 'sha256', hex), bytes)
  return folder
}
/** The bundle as a folder, or as a compressed file with index.json and the manifests first. */
function write(layout: TestLayout, form: string): string {
  const folder = writeFolder(layout)
  if (form === 'folder') return folder
  const blobs = [...layout.blobs].sort(([, one], [, two]) => one.length - two.length)
  const members = ['oci-layout', 'index.json', ...blobs.map(([hex]) => `blobs/sha256/${hex}`)]
  execFileSync('tar', ['-C', folder, '-caf', `${folder}.tar.zst`, ...members])
  return `${folder}.tar.zst`
}
const sizeOf = (layout: TestLayout) => [...layout.blobs.values()].reduce((sum, { length }) => sum + length, 0)
async function expectPublished(layout: TestLayout) {
  for (const [hex, bytes] of layout.blobs)
    expect(bytes.equals(await readFile(join(stateDirectory, 'content', 'blobs', 'sha256', hex))), hex).toBe(
      true,
    )
}
const requests = (part: string) =>
  wire.edge.lines.filter(({ path }) => typeof path === 'string' && path.endsWith(part)).length

it('over TLS an administrator uploads, lists and deletes, and a viewer only reads', async () => {
  await start()
  await logIn('alice')
  const layout = layoutOf([noisyText(100_000)])
  const folder = writeFolder(layout)
  const { exitCode, sent } = await upload(folder)
  expect([exitCode, sent.isNew]).toEqual([0, true])
  await expectPublished(layout)
  await logIn('bob')
  const run = (...args: string[]) => ctl.run([...target(), ...args])
  for (const args of [['list'], ['show', sent.uid], ['usage'], ['uploads']])
    expect(await run('content', ...args)).toMatchObject({ exitCode: 0 })
  const refused = [
    await run('content', 'upload', folder),
    await run('content', 'delete', sent.uid, '--yes'),
    await run('content', 'discard', sent.uid),
  ]
  for (const ended of refused) {
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toContain('(Forbidden)')
  }
  await logIn('alice')
  expect(await run('content', 'delete', sent.uid, '--yes')).toMatchObject({ exitCode: 0 })
})

it.each(['folder', '.tar.zst'])(
  'an access token that ends during an upload of a %s is renewed, and nothing is lost',
  async (form) => {
    await start()
    await logIn('alice')
    const before = kept()
    const layout = layoutOf([
      noisyText(12_000_000),
      noisyText(12_000_000),
      noisyText(12_000_000),
      noisyText(100_000),
    ])
    const path = write(layout, form)
    const passedAt = 6_000_000
    network.cutAfter(passedAt)
    const running = upload(path)
    await vi.waitUntil(network.isCut, { timeout: 30_000, interval: 1 })
    wire.edge.clock.turn(16 * minuteMs)
    network.mend()
    const { exitCode, stderr } = await running
    expect([exitCode, stderr]).toEqual([0, expect.not.stringMatching(/not logged in|Warning/)])
    expect(kept()).not.toBe(before)
    await expectPublished(layout)
  },
)

it.each(['folder', '.tar.zst'])(
  'after a loss of the network an upload of a %s continues by itself, with pauses, from the bytes that the host holds',
  async (form) => {
    await start()
    await logIn('alice')
    const layout = layoutOf([noisyText(30_000_000), noisyText(100_000)])
    const path = write(layout, form)
    network.cutAfter(20_000_000)
    const began = performance.now()
    const running = upload(path)
    await vi.waitUntil(() => network.refused() >= 2, { timeout: 30_000, interval: 5 })
    network.mend()
    const { exitCode, stderr, sent } = await running
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/Interrupted: .*; next attempt in 2 s\./)])
    expect(performance.now() - began).toBeGreaterThan(3_000)
    expect(network.refused()).toBeLessThan(20)
    expect(sent.isNew).toBe(true)
    // What was under way is sent twice, what had arrived is not.
    expect(sent.sentBytes).toBeLessThan(sizeOf(layout) + 15_000_000)
    await expectPublished(layout)
  },
)

it('a daemon that stops in the middle of a blob and starts again gets the rest', async () => {
  await start()
  await logIn('alice')
  const layout = layoutOf([noisyText(60_000_000), noisyText(100_000)])
  const folder = writeFolder(layout)
  network.cutAfter(30_000_000)
  const running = upload(folder)
  await vi.waitUntil(network.isCut, { timeout: 30_000, interval: 1 })
  await wire.stop()
  await vi.waitUntil(() => network.refused() >= 1, { timeout: 30_000, interval: 5 })
  await start()
  network.mend()
  const { exitCode, sent } = await running
  expect([exitCode, sent.isNew]).toEqual([0, true])
  // What was cut may be in buffers of the kernel, up to some 15 MB; without what the daemon had, 30 MB more would be sent.
  expect(sent.sentBytes).toBeLessThan(sizeOf(layout) + 30_000_000)
  await expectPublished(layout)
})

it('1,000 small blobs are sent under the default rate limits', async () => {
  await start({ rateLimits: defaultRates })
  await logIn('alice')
  const layout = layoutOf(Array.from({ length: 1_000 }, (_, number) => `layer ${number}`))
  const { exitCode, stderr } = await upload(writeFolder(layout))
  expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('Interrupted')])
  await expectPublished(layout)
})

it.each(['folder', '.tar.zst'])(
  'a host that takes few requests is obeyed: a %s arrives whole, and is not read again for each refusal',
  async (form) => {
    const blobs = { requestsPerSecond: 50, burst: 1 }
    await start({ rateLimits: { ...defaultRates, blobs } })
    await logIn('alice')
    const layout = layoutOf(Array.from({ length: 200 }, (_, number) => `layer ${number}`))
    const { exitCode, stderr, sent } = await upload(write(layout, form))
    expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('Interrupted')])
    expect(wire.edge.lines.some(({ status }) => status === 429)).toBe(true)
    // One for each step, and no one for each refusal.
    expect(requests('/missing')).toBeGreaterThan(1)
    expect(requests('/missing')).toBeLessThan(8)
    expect(sent.sentBytes).toBe(sizeOf(layout))
    await expectPublished(layout)
  },
)

it('two running uploads that share a large blob both end, and so do two of the same bundle', async () => {
  await start()
  await logIn('alice')
  const shared = noisyText(20_000_000)
  const [one, two] = [layoutOf([shared, 'one']), layoutOf([shared, 'two'])]
  const different = await Promise.all([upload(writeFolder(one)), upload(write(two, '.tar.zst'))])
  expect(different.map(({ exitCode, sent }) => [exitCode, sent.isNew])).toEqual([
    [0, true],
    [0, true],
  ])
  const same = layoutOf([noisyText(20_000_000), noisyText(100_000)])
  const folder = writeFolder(same)
  const equal = await Promise.all([upload(folder), upload(folder), upload(folder)])
  expect(equal.map(({ exitCode, stderr }) => (exitCode === 0 ? 0 : stderr))).toEqual([0, 0, 0])
  expect(new Set(equal.map(({ sent }) => sent.uid)).size).toBe(1)
  for (const layout of [one, two, same]) await expectPublished(layout)
})

it('a compressed bundle that ends early is a failure that names the file, and no attempt is repeated', async () => {
  await start()
  await logIn('alice')
  const file = write(layoutOf([noisyText(12_000_000)]), '.tar.zst')
  truncateSync(file, statSync(file).size - 2_000_000)
  const { exitCode, stderr } = await upload(file)
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^edgehostctl: \S+\.tar\.zst: [^\n]+$/m)
  expect(stderr).not.toMatch(/Interrupted|at .*edgehostctl\.cjs/)
})
