import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { annotations, artifactTypes, mediaTypes } from '../../../src/content/format/media-types.ts'
import { contentClient, noReserve, type ContentClient } from '../../support/content-uploads.ts'
import { createLayout, type TestLayout } from '../../support/layouts.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
let client: ContentClient
beforeEach(async () => {
  edge = await createTestEdge({ content: noReserve })
  client = contentClient(edge, (await edge.login('alice')).access)
})
afterEach(() => edge.stop())

type Files = Readonly<Record<string, string>>
const named = (version: string) => ({ [annotations.title]: 'tool', [annotations.version]: version })

/** A manifest of a program, as `edgehostctl content build --programs` writes it; names in `bin/` can be executed. */
function program(layout: TestLayout, files: Files, more: object = {}) {
  const layers = Object.entries(files).map(([title, text]) =>
    layout.put(text, mediaTypes.fileContent, {
      annotations: {
        [annotations.title]: title,
        [annotations.fileMode]: title.startsWith('bin/') ? '0755' : '0644',
      },
    }),
  )
  return layout.artifact({ artifactType: artifactTypes.program, layers, more })
}

/** A program of a version for architectures. */
function layoutOf(version: string, architectures: Readonly<Record<string, Files>>): TestLayout {
  const layout = createLayout()
  const manifests = Object.entries(architectures).map(([architecture, files]) =>
    program(layout, files, { platform: { os: 'linux', architecture } }),
  )
  layout.list(layout.index(manifests), named(version))
  return layout
}

const find = (version: string, architecture: string) =>
  edge.content.findProgram({ name: 'tool', version, architecture })
const textsOf = async (version: string, architecture: string) => {
  const { files = [] } = (await find(version, architecture)) ?? {}
  return Promise.all(files.map(async ({ path }) => readFile(path, 'utf8')))
}

it('a program is found by name, version and architecture, with the files of that one and their modes', async () => {
  const layout = layoutOf('1.2', {
    amd64: { 'bin/tool': 'for amd64', 'tool.conf': 'common' },
    arm64: { 'bin/tool': 'for arm64', 'tool.conf': 'common' },
  })
  const { uid } = (await client.upload(layout)).json<{ uid: string }>()
  await client.upload(layoutOf('1.3', { amd64: { 'bin/tool': 'newer' } }))

  const found = await find('1.2', 'arm64')
  expect(found).toMatchObject({ bundle: { uid }, isWhole: true })
  expect(layout.blobs.has(found!.digest.slice(7))).toBe(true)
  await edge.content.pin('cluster shop', [found!.entryDigest])
  expect(
    (await edge.get(`/v1/edge-mgmt/content/bundles/${uid}`, (await edge.login('bob')).access)).json(),
  ).toMatchObject({
    holders: ['cluster shop'],
  })
  expect(found?.files.map(({ title, mode }) => [title, mode])).toEqual([
    ['bin/tool', 0o755],
    ['tool.conf', 0o644],
  ])
  expect(await textsOf('1.2', 'arm64')).toEqual(['for arm64', 'common'])
  expect(await textsOf('1.2', 'amd64')).toEqual(['for amd64', 'common'])
  expect(await textsOf('1.3', 'amd64')).toEqual(['newer'])
  expect(await find('1.3', 'arm64')).toBeUndefined()
  expect(await find('2', 'amd64')).toBeUndefined()
  expect(
    await edge.content.findProgram({ name: 'other', version: '1.2', architecture: 'amd64' }),
  ).toBeUndefined()
})

it('a program without architectures is for all, and an architecture that is not carried is not found', async () => {
  const scripts = createLayout()
  scripts.list(program(scripts, { 'bin/run.sh': 'echo' }), named('1'))
  await client.upload(scripts)
  expect(await textsOf('1', 'arm64')).toEqual(['echo'])

  const sparse = layoutOf('2', { amd64: { 'bin/tool': 'a' }, arm64: { 'bin/tool': 'b' } })
  const [, arm64] = (
    JSON.parse([...sparse.blobs.values()].at(-1)!.toString()) as { manifests: { digest: string }[] }
  ).manifests
  sparse.remove(arm64!.digest)
  await client.upload(sparse)
  expect(await textsOf('2', 'amd64')).toEqual(['a'])
  expect(await find('2', 'arm64')).toBeUndefined()
})

it('the versions of a program for an architecture are those of the newest bundle first, each once', async () => {
  const versions = (architecture: string) => edge.content.programVersions('tool', architecture)
  expect(await versions('amd64')).toEqual([])
  await client.upload(layoutOf('3', { amd64: { 'bin/tool': 'three' } }))
  await client.upload(layoutOf('2', { amd64: { 'bin/tool': 'two' }, arm64: { 'bin/tool': 'two for arm64' } }))
  const again = layoutOf('3', { amd64: { 'bin/tool': 'three' } })
  again.list(program(again, { 'bin/tool': 'ten' }), named('10'))
  await client.upload(again)
  expect(await versions('amd64')).toEqual(['10', '3', '2'])
  expect(await versions('arm64')).toEqual(['10', '2'])
  expect(await edge.content.programVersions('other', 'amd64')).toEqual([])
})
