import { randomBytes } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Bundle, BundleDeletion, BundleEntry, ContentUsage } from '../../../src/content/schemas.ts'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { contentClient, imageLayout, noReserve, type ContentClient } from '../../support/content-uploads.ts'
import { createCtlShell, type CtlShell } from '../../support/ctl-shell.ts'
import { createLayout, type TestLayout } from '../../support/layouts.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'
import { dayMs } from '../../support/turning-clock.ts'

let shell: CtlShell
beforeAll(async () => {
  shell = await createCtlShell()
})
afterAll(() => shell.stop())

let edge: TestEdge
let client: ContentClient
let socket: string
beforeEach(async () => {
  socket = shell.at(`${randomBytes(4).toString('hex')}.sock`)
  edge = await createTestEdge({ content: noReserve, socket })
  await edge.daemon.rooms.api.listen(0)
  client = contentClient(edge, (await edge.login('alice')).access)
})
afterEach(() => edge.stop())

const run = (args: string) => shell.command(args, { env: { EDGEHOSTCTL_SOCKET: socket } })
async function asked<T>(args: string): Promise<T> {
  const { exitCode, stdout, stderr } = await run(`${args} -o json`)
  if (exitCode !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as T
}
/** Runs a command on a terminal (script(1)) and types a line. */
const answer = (line: string, args: string) =>
  shell.run(`echo '${line}' | script -qec 'edgehostctl ${args}; echo ended with $?' /dev/null`, {
    EDGEHOSTCTL_SOCKET: socket,
  })

async function publish(layout: TestLayout): Promise<string> {
  const reply = await client.upload(layout)
  expect(reply.statusCode).toBe(201)
  return reply.json<{ uid: string }>().uid
}

/** An image for two platforms, of which one is carried. */
function sparse(): TestLayout {
  const layout = createLayout()
  const here = layout.image({ layers: ['here'] })
  const other = layout.put('absent', mediaTypes.manifest, {
    platform: { os: 'linux', architecture: 'arm64' },
  })
  layout.list(layout.index([here, other]), { 'org.opencontainers.image.ref.name': 'registry.example/app:1' })
  layout.remove(other.digest)
  return layout
}

describe('edgehostctl content list and show', () => {
  it('bundles are listed newest first, in pages of any number, and -o json has every field of the API', async () => {
    const uids: string[] = []
    for (const name of ['one', 'two', 'three'])
      uids.unshift(await publish(imageLayout([name], `registry.example/${name}:1`)))
    const { items } = await asked<{ items: Bundle[] }>('content list')
    expect(items.map(({ uid }) => uid)).toEqual(uids)
    const reply = await edge.get('/v1/edge-mgmt/content/bundles', (await edge.login('bob')).access)
    expect(items).toEqual(reply.json<{ items: Bundle[] }>().items)
    const { stdout } = await run('content list')
    expect(stdout).toMatch(/^UID +NAME +PUBLISHED +SIZE +IMAGES +ARCHITECTURES +STATE\n/)
    for (const uid of uids) expect(stdout).toContain(uid)
    expect((await asked<{ items: Bundle[] }>('content list --limit=2')).items).toHaveLength(2)
    expect(
      (await asked<{ items: Bundle[] }>(`content list --filter=uid=${uids[1] ?? ''}`)).items.map(
        ({ uid }) => uid,
      ),
    ).toEqual([uids[1]])
    expect(await run('content list --limit=few')).toMatchObject({ exitCode: 2, stdout: '' })
  })

  it('a bundle is shown with its entries, the platforms that it lacks, and where a tag leads', async () => {
    const old = await publish(imageLayout(['old']))
    const uid = await publish(sparse())
    const shown = await asked<Bundle & { entries: BundleEntry[] }>(`content show ${uid}`)
    expect(shown).toMatchObject({ uid, images: 1, architectures: ['amd64'] })
    expect(shown.entries).toMatchObject([
      { kind: 'image', name: 'registry.example/app', tag: '1', hasTag: true },
    ])
    const { stdout } = await run(`content show ${uid}`)
    expect(stdout).toContain(shown.indexDigest)
    expect(stdout).toMatch(/^KIND +NAME +TAG +PLATFORMS +NOT HERE +SIZE +DIGEST$/m)
    expect(stdout).toMatch(
      /^image +registry\.example\/app:1 +leads here +linux\/amd64 +linux\/arm64 +\S+ \S+ +sha256:[0-9a-f]{12}$/m,
    )
    expect((await run(`content show ${old}`)).stdout).toContain('leads to a newer bundle')
    expect((await asked<{ entries: [] }>(`content show ${uid} --filter=kind=chart`)).entries).toEqual([])
  })

  it('all entries of a bundle are shown, and --limit ends them', async () => {
    const layout = createLayout()
    for (let number = 0; number < 120; number += 1)
      layout.list(layout.image({ layers: [`layer ${number}`] }), {
        'org.opencontainers.image.ref.name': `registry.example/app:${number}`,
      })
    const uid = await publish(layout)
    const tags = async (more = '') =>
      (await asked<{ entries: BundleEntry[] }>(`content show ${uid} ${more}`)).entries.map(({ tag }) => tag)
    expect(await tags()).toEqual(Array.from({ length: 120 }, (_, number) => String(number)))
    expect(await tags('--limit=70')).toHaveLength(70)
  })

  it('damage and another architecture are shown', async () => {
    const layout = createLayout()
    layout.list(layout.image({ layers: ['arm'], architecture: 'arm64' }))
    const uid = await publish(layout)
    expect((await run('content list')).stdout).toContain('other architecture')
    expect((await run(`content show ${uid}`)).stdout).toContain('arm64, but not that of this host')
    const [hex = ''] = layout.blobs.keys()
    await rm(join(edge.stateDirectory, 'content', 'blobs', 'sha256', hex))
    edge.clock.turn(31 * dayMs)
    await edge.content.jobs?.find(({ name }) => name === 'content-check')?.run()
    expect((await run('content list')).stdout).toContain('damaged')
    expect((await run(`content show ${uid}`)).stdout).toContain('1 blob; upload the bundle again')
    expect((await run('content usage')).stdout).toContain('1 blob of')
  })

  it('a bundle that is not there is exit code 1 with what lists them', async () => {
    for (const verb of ['show', 'delete --yes']) {
      const ended = await run(`content ${verb} 3f2c5e2e-93a4-4c43-8f0e-000000000001`)
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(ended.stderr).toMatch(/there is no bundle .*\(NotFound\)/)
    }
    expect(await run('content show')).toMatchObject({ exitCode: 2 })
  })
})

describe('edgehostctl content delete', () => {
  const left = async () => (await asked<{ items: Bundle[] }>('content list')).items.length

  it('a dry run says what goes, and deletes nothing', async () => {
    const layout = sparse()
    const uid = await publish(layout)
    const plan = await asked<BundleDeletion>(`content delete ${uid} --dry-run`)
    // index.json is a blob of the bundle too.
    expect(plan).toMatchObject({ uid, entries: 1, blobs: layout.blobs.size + 1, holders: [] })
    expect((await run(`content delete ${uid} --dry-run`)).stdout).toMatch(
      /Would go: 1 entry and \d+ blobs of/,
    )
    expect(await left()).toBe(1)
  })

  it('without a terminal and without --yes it is a wrong command line that says what would go', async () => {
    const uid = await publish(sparse())
    const ended = await run(`content delete ${uid}`)
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toMatch(/1 entry and \d+ blobs of .*add --yes/s)
    expect(await left()).toBe(1)
  })

  it('on a terminal only a yes deletes', async () => {
    const uid = await publish(sparse())
    for (const no of ['', 'n', 'yesterday']) {
      const { stdout } = await answer(no, `content delete ${uid}`)
      expect(stdout).toContain('Delete it? [y/N]')
      expect(stdout).toContain('ended with 1')
      expect(await left()).toBe(1)
    }
    expect((await answer('y', `content delete ${uid}`)).stdout).toContain('ended with 0')
    expect(await left()).toBe(0)
  })

  it('--yes deletes the bundle and its blobs, and prints what went', async () => {
    const uid = await publish(sparse())
    expect(await asked<BundleDeletion>(`content delete ${uid} --yes`)).toMatchObject({ uid, entries: 1 })
    expect(await left()).toBe(0)
    expect(await readdir(join(edge.stateDirectory, 'content', 'blobs', 'sha256'))).toEqual([])
  })

  it('a bundle that something needs is not deleted, and what needs it is named', async () => {
    const uid = await publish(sparse())
    await edge.content.pin('cluster edge-1', ['registry.example/app:1'])
    for (const ended of [await run(`content delete ${uid} --yes`), await run(`content delete ${uid}`)]) {
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(ended.stderr).toContain('is needed by cluster edge-1')
    }
    expect((await run('content list')).stdout).toContain('in use')
    expect((await run(`content show ${uid}`)).stdout).toContain('Needed by: cluster edge-1')
    expect(await left()).toBe(1)
  })
})

describe('edgehostctl content usage', () => {
  it('what bundles take, what sharing saves and what is left is shown', async () => {
    await publish(imageLayout(['shared layer', 'one'], 'registry.example/one:1'))
    await publish(imageLayout(['shared layer', 'two'], 'registry.example/two:1'))
    await writeFile(join(edge.stateDirectory, 'content', 'uploads', 'left'), '')
    const usage = await asked<ContentUsage>('content usage')
    expect(usage.bundles).toBe(2)
    expect(usage.sharedBytes).toBeGreaterThan(0)
    const { stdout } = await run('content usage')
    expect(stdout).toMatch(/Bundles: 2, .* in all/)
    expect(stdout).toContain(`shared blobs save ${usage.sharedBytes} bytes`)
    expect(stdout).toContain(usage.fileSystem.directory)
    expect(stdout).toMatch(/Available: .* for a new upload/)
  })
})
