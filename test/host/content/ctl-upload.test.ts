import { execFileSync } from 'node:child_process'
import { createSign, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { execa } from 'execa'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { noReserve } from '../../support/content-uploads.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { createLayout, type TestLayout } from '../../support/layouts.ts'
import { compressions } from '../../support/tar-bytes.ts'
import { createTestEdge, type TestEdge, type TestEdgeOptions } from '../../support/test-edge.ts'
import { noise } from '../../support/random.ts'

let ctl: Ctl
let work: string
beforeAll(() => {
  ctl = createCtl()
  work = mkdtempSync(join(tmpdir(), 'edgehostd-ctl-upload-'))
})
afterAll(() => {
  for (const folder of [ctl.home, work]) rmSync(folder, { recursive: true, force: true })
})

let edge: TestEdge
let socket: string
const start = async (options: TestEdgeOptions = {}) => {
  socket = join(work, `${randomBytes(4).toString('hex')}.sock`)
  edge = await createTestEdge({ content: noReserve, socket, ...options })
  await edge.daemon.rooms.api.listen(0)
}
beforeEach(() => start())
afterEach(() => edge.stop())

const run = (...args: string[]) => ctl.run([...args, '--socket', socket])
const upload = async (path: string, ...args: string[]) => {
  const { exitCode, stdout, stderr } = await run('content', 'upload', path, '-o', 'json', ...args)
  if (exitCode !== 0) throw new Error(`${exitCode}: ${stderr}`)
  return {
    ...(JSON.parse(stdout) as { uid: string; isNew: boolean; sentBytes: number; message: string }),
    stderr,
  }
}

const text = (bytes: number) => noise(bytes / 2).toString('hex')

/** A layout with two images, one of them with large layers. */
function someLayout(megabytes = 1): TestLayout {
  const layout = createLayout()
  const large = layout.image({ layers: [text(1_048_576 * megabytes), text(20_000)] })
  const small = layout.image({ layers: [text(1_000), text(10)], architecture: 'arm64' })
  layout.list(layout.index([large, small]), {
    'org.opencontainers.image.ref.name': `registry.example/app:${text(8)}`,
  })
  return layout
}

/** Writes a layout as a folder. */
function writeFolder(layout: TestLayout, name: string): string {
  const folder = join(work, name)
  mkdirSync(join(folder, 'blobs', 'sha256'), { recursive: true })
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  writeFileSync(join(folder, 'index.json'), layout.indexFile())
  for (const [hex, bytes] of layout.blobs) writeFileSync(join(folder, 'blobs', 'sha256', hex), bytes)
  return folder
}

/** Packs a folder with tar(1). */
function pack(folder: string, file: string, members: readonly string[]): string {
  execFileSync('tar', ['-C', folder, '-caf', join(work, file), ...members])
  return join(work, file)
}

async function expectPublished(layout: TestLayout): Promise<void> {
  for (const [hex, bytes] of layout.blobs) {
    // Not `toEqual`, which takes seconds for some MB.
    const stored = await readFile(join(edge.stateDirectory, 'content', 'blobs', 'sha256', hex))
    expect(bytes.equals(stored), hex).toBe(true)
  }
}

const members = { first: ['oci-layout', 'index.json', 'blobs'], last: ['blobs', 'index.json', 'oci-layout'] }

describe('edgehostctl content upload', () => {
  it.each([
    ['a folder', ''],
    ['a .tar that begins with index.json', 'first.tar'],
    ['a .tar that ends with index.json', 'last.tar'],
    ['a .tar.gz', 'first.tar.gz'],
    ['a .tar.zst that begins with index.json', 'first.tar.zst'],
    ['a .tar.zst that ends with index.json', 'last.tar.zst'],
  ])('%s is published with every blob, and sent again it is known', async (_, file) => {
    // Larger than what is buffered of a source that is read in order.
    const layout = someLayout(12)
    const folder = writeFolder(layout, randomBytes(4).toString('hex'))
    const path =
      file === '' ? folder : pack(folder, file, file.startsWith('first') ? members.first : members.last)
    const total = [...layout.blobs.values()].reduce((sum, { length }) => sum + length, 0)
    const sent = await upload(path)
    expect(sent).toMatchObject({ isNew: true, sentBytes: total })
    await expectPublished(layout)
    expect(await upload(path)).toMatchObject({ uid: sent.uid, isNew: false, sentBytes: 0 })
  })

  it('a .tar.zst that begins with a skippable frame, as pzstd writes it, is published', async () => {
    const layout = someLayout()
    const plain = pack(writeFolder(layout, 'skippable'), 'skippable.tar', members.first)
    const path = join(work, 'skippable.tar.zst')
    writeFileSync(path, compressions.pzstd(await readFile(plain)))
    expect(await upload(path)).toMatchObject({ isNew: true })
    await expectPublished(layout)
  })

  it('a bundle may lack a platform of an index, but no layer of a manifest that it carries', async () => {
    const layout = createLayout()
    const [here, other] = [
      layout.image({ layers: ['here'] }),
      layout.image({ layers: ['other'], architecture: 'arm64' }),
    ]
    layout.list(layout.index([here, other]))
    layout.remove(other.digest)
    const folder = writeFolder(layout, 'sparse')
    await upload(folder)

    const broken = someLayout()
    const lacking = writeFolder(broken, 'lacking')
    for (const [hex, bytes] of broken.blobs)
      if (bytes.length > 1_000_000) rmSync(join(lacking, 'blobs', 'sha256', hex))
    const { exitCode, stderr } = await run('content', 'upload', lacking)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('lacks blobs that it needs')])
  })

  it.each(['a folder', 'sparse.tar', 'sparse.tar.zst'])(
    'a bundle without a platform is known when it is sent again, and gets the platform from a fuller one: %s',
    async (kind) => {
      const layout = createLayout()
      const images = ['amd64', 'arm64'].map((architecture) =>
        layout.image({ layers: [text(100)], architecture }),
      )
      layout.list(layout.index(images))
      const whole = new Map(layout.blobs)
      layout.remove(images[1]!.digest)
      const name = randomBytes(4).toString('hex')
      const place = (path: string) =>
        kind === 'a folder' ? path : pack(path, `${name}-${kind}`, members.first)
      const sparse = place(writeFolder(layout, name))
      const first = await upload(sparse)
      expect(await upload(sparse)).toMatchObject({ uid: first.uid, isNew: false, sentBytes: 0 })
      expect((await run('content', 'uploads', '-o', 'json')).stdout).toContain('"items": []')

      for (const [hex, bytes] of whole) layout.blobs.set(hex, bytes)
      const full = place(writeFolder(layout, name))
      const sent = await upload(full)
      expect(sent).toMatchObject({ uid: first.uid, isNew: false })
      expect(sent.sentBytes).toBeGreaterThan(0)
      expect(sent.message).toContain('blobs that it lacked were added')
      await expectPublished(layout)
      expect(await upload(full)).toMatchObject({ uid: first.uid, isNew: false, sentBytes: 0 })
    },
  )

  it('after an interruption the same command sends only what the host does not have', async () => {
    const layout = someLayout(48)
    const folder = writeFolder(layout, 'interrupted')
    const total = [...layout.blobs.values()].reduce((sum, { length }) => sum + length, 0)
    const args = [ctl.program, 'content', 'upload', folder, '--socket', socket]
    const first = execa(process.execPath, args, { reject: false, env: { HOME: ctl.home } })
    const { access } = await edge.login('alice')
    const received = async () => {
      const reply = await edge.get('/v1/edge-mgmt/content/uploads', access)
      return reply.json<{ items: { receivedBytes: number }[] }>().items[0]?.receivedBytes ?? 0
    }
    await vi.waitUntil(async () => (await received()) > 2_000_000, { timeout: 20_000, interval: 1 })
    first.kill('SIGINT')
    const { exitCode, stderr } = await first
    expect([exitCode, stderr]).toEqual([
      130,
      expect.stringContaining('the same command continues the upload'),
    ])
    const { sentBytes, isNew } = await upload(folder)
    expect(isNew).toBe(true)
    expect(sentBytes).toBeLessThan(total - 1_000_000)
    await expectPublished(layout)
  })

  it('a damaged blob is named, and a file that is no bundle is refused with what makes one', async () => {
    const layout = someLayout()
    const folder = writeFolder(layout, 'damaged')
    const [hex] = [...layout.blobs].find(([, bytes]) => bytes.length > 1_000_000)!
    writeFileSync(join(folder, 'blobs', 'sha256', hex), text(1_048_576))
    const damaged = await run('content', 'upload', folder)
    expect([damaged.exitCode, damaged.stderr]).toEqual([1, expect.stringContaining(hex)])

    const saved = pack(folder, 'saved.tar', ['oci-layout'])
    const refused = await run('content', 'upload', saved)
    expect([refused.exitCode, refused.stderr]).toEqual([
      2,
      expect.stringContaining('content build --image-archive'),
    ])
    writeFileSync(join(work, 'noise.tar'), noise(10_000))
    expect((await run('content', 'upload', join(work, 'noise.tar'))).exitCode).toBe(2)
    expect((await run('content', 'upload', join(work, 'nowhere.tar'))).exitCode).toBe(2)
  })

  it('a signature of index.json resumes; one of the file sends it whole, and says so', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    await edge.stop()
    await start({ signingKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() })
    const [one, two] = [someLayout(), someLayout()]
    const signed = (bytes: Buffer, name: string) => {
      writeFileSync(join(work, name), createSign('sha256').update(bytes).sign(privateKey))
      return ['--signature', join(work, name)]
    }
    const folder = writeFolder(one, 'signed-one')
    expect((await upload(folder, ...signed(one.indexFile(), 'one.sig'))).stderr).not.toContain('as one')
    await expectPublished(one)

    const file = pack(writeFolder(two, 'signed-two'), 'two.tar.zst', members.first)
    expect((await upload(file, ...signed(await readFile(file), 'two.sig'))).stderr).toContain(
      'the file is sent as one',
    )
    await expectPublished(two)

    const third = writeFolder(someLayout(), 'signed-three')
    const unsigned = await run('content', 'upload', third)
    expect([unsigned.exitCode, unsigned.stderr]).toEqual([1, expect.stringContaining('SignatureMissing')])
    const wrong = await run('content', 'upload', third, '--signature', join(work, 'one.sig'))
    expect([wrong.exitCode, wrong.stderr]).toEqual([1, expect.stringContaining('is not one of')])
  })

  it('unfinished uploads are listed and thrown away', async () => {
    const layout = someLayout()
    const folder = writeFolder(layout, 'unfinished')
    for (const [hex, bytes] of layout.blobs)
      if (bytes.length > 1_000_000) rmSync(join(folder, 'blobs', 'sha256', hex))
    await run('content', 'upload', folder, '--name', 'half')
    const listed = await run('content', 'uploads', '-o', 'json')
    const { items } = JSON.parse(listed.stdout) as { items: { uid: string; name: string }[] }
    expect(items).toMatchObject([{ name: 'half' }])
    expect((await run('content', 'uploads')).stdout).toContain('half')
    expect((await run('content', 'discard', items[0]!.uid)).exitCode).toBe(0)
    expect(JSON.parse((await run('content', 'uploads', '-o', 'json')).stdout)).toMatchObject({ items: [] })
  })
})
