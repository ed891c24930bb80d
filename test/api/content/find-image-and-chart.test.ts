import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createContentPreflight } from '../../../src/cluster/desired/preflight.ts'
import { annotations, mediaTypes } from '../../../src/content/format/media-types.ts'
import { contentClient, noReserve, type ContentClient } from '../../support/content-uploads.ts'
import { createLayout } from '../../support/layouts.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
let client: ContentClient
beforeEach(async () => {
  edge = await createTestEdge({ content: noReserve })
  client = contentClient(edge, (await edge.login('alice')).access)
})
afterEach(() => edge.stop())

const programs = {
  find: () => Promise.resolve({ kind: 'missing' as const, code: 'ProgramMissing' as const, reason: 'none' }),
}
const images = (...names: readonly string[]) => names.map((image) => ({ image }))
const pack = (id: string, ...names: readonly string[]) => ({
  ...{ pack: id, charts: [], usesHelm: false },
  images: images(...names),
})
const kubernetes = (...names: readonly string[]) => ({
  version: '1.34.4',
  images: names.map((image) => ({ image, isTagKnown: true })),
})

const named = (name: string) => ({ [annotations.refName]: name })

it('a chart is found by its name and version, with the archive that helm packed', async () => {
  const layout = createLayout()
  const config = layout.putJson({ name: 'web', version: '1.2.0' }, mediaTypes.chartConfig)
  const layers = [layout.put('an archive', mediaTypes.chartContent)]
  const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers }
  layout.list(layout.putJson(manifest, mediaTypes.manifest), named('web:1.2.0'))
  await client.upload(layout)
  const found = await edge.content.findChart('web:1.2.0')
  expect(await readFile(found?.path ?? '', 'utf8')).toBe('an archive')
  await edge.content.pin('cluster shop', [found!.digest])
  expect(await edge.content.findChart('web:1.3.0')).toBeUndefined()
  expect(await edge.content.findChart('other:1.2.0')).toBeUndefined()
})

it('the pre-flight names each image that cannot be started here, once, with all that need it', async () => {
  const layout = createLayout()
  layout.list(layout.image(), named('registry.example/own:1'))
  layout.list(layout.image({ architecture: 'arm64', layers: ['arm'] }), named('registry.example/arm:1'))
  const half = [layout.image({ layers: ['x'] }), layout.image({ architecture: 'arm64', layers: ['y'] })]
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ platform: { os: 'linux', architecture } }))
  layout.list(
    layout.index(half.map((manifest, index) => ({ ...manifest, ...platforms[index] }))),
    named('registry.example/half:1'),
  )
  layout.remove(half[0]?.digest ?? '')
  await client.upload(layout)
  const preflight = createContentPreflight({ content: edge.content, programs, architecture: 'amd64' })
  const { problems, digests, needs } = await preflight.check({
    packs: [
      pack('u1/web', 'registry.example/own:1', 'registry.example/gone:1', 'registry.example/arm:1'),
      pack('u1/till', 'registry.example/gone:1', 'registry.example/half:1'),
    ],
    kubernetes: kubernetes('registry.k8s.io/pause:3.10.1', 'registry.example/gone:1'),
  })
  expect(problems.map(({ code, severity, pack, message }) => [code, severity, pack, message])).toEqual([
    [
      ...['ImageMissing', 'error', undefined],
      'image registry.k8s.io/pause:3.10.1 is in no content bundle of this host; upload a bundle that has it (needed by Kubernetes)',
    ],
    [
      ...['ImageMissing', 'error', 'u1/web'],
      'image registry.example/gone:1 is in no content bundle of this host; upload a bundle that has it (needed by Kubernetes, web, till)',
    ],
    [
      ...['ImageForeign', 'error', 'u1/web'],
      expect.stringMatching(/ is not for amd64: the bundle .* has it for arm64; /),
    ],
    [...['ImageForeign', 'error', 'u1/till'], expect.stringContaining('has it for arm64')],
  ])
  expect(digests).toHaveLength(3)
  expect(needs.map(({ name, origin, isThere }) => [name, origin, isThere]).slice(0, 5)).toEqual([
    ['registry.k8s.io/pause:3.10.1', 'Kubernetes', false],
    ['registry.example/gone:1', 'Kubernetes, web, till', false],
    ['registry.example/own:1', 'web', true],
    ['registry.example/arm:1', 'web', false],
    ['registry.example/half:1', 'till', false],
  ])
  expect(needs.find(({ isThere }) => isThere)?.sizeBytes).toBeGreaterThan(100)
  await edge.content.pin('cluster shop', digests)
})

it('an image whose bundle has lost a blob is damaged', async () => {
  const layout = createLayout()
  layout.list(layout.image({ layers: ['a layer'] }), named('registry.example/own:1'))
  await client.upload(layout)
  const content = {
    find: async (...asked: Parameters<typeof edge.content.find>) => {
      const image = await edge.content.find(...asked)
      return image && { ...image, isWhole: false }
    },
  }
  const { problems } = await createContentPreflight({ content, programs, architecture: 'amd64' }).check({
    packs: [pack('u1/web', 'registry.example/own:1')],
    kubernetes: kubernetes(),
  })
  expect(problems).toMatchObject([{ code: 'ImageDamaged', severity: 'error', pack: 'u1/web' }])
})
