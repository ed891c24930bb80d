import { afterEach, beforeEach, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { startContentRegistry, type TestRegistry } from '../../support/content-registry.ts'
import { createLayout, type TestDescriptor } from '../../support/layouts.ts'

let registry: TestRegistry
let image: TestDescriptor
let signature: TestDescriptor
let bill: TestDescriptor

const titled = (title: string, version?: string) => ({
  'org.opencontainers.image.title': title,
  ...(version === undefined ? {} : { 'org.opencontainers.image.version': version }),
})

beforeEach(async () => {
  registry = await startContentRegistry()
  const layout = createLayout()
  image = layout.image()
  for (const name of [
    'quay.io/tools/app:2',
    'docker.io/tools/app:1',
    'docker.io/tools/app:1.0',
    'quay.io/tools/app:1',
  ])
    layout.list(image, { 'io.containerd.image.name': name })
  const config = layout.put('{}', mediaTypes.emptyConfig)
  const belonging = (more: object) =>
    layout.putJson(
      { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [], ...more },
      mediaTypes.manifest,
    )
  const subject = { mediaType: image.mediaType, digest: image.digest, size: image.size }
  signature = belonging({
    artifactType: 'application/vnd.test.signature',
    subject,
    annotations: { by: 'us' },
  })
  bill = layout.putJson(
    {
      ...{ schemaVersion: 2, mediaType: mediaTypes.manifest, subject, layers: [] },
      config: layout.put('{"a":1}', 'application/vnd.test.bill'),
    },
    mediaTypes.manifest,
  )
  layout.list(signature)
  layout.list(bill)
  const chart = layout.artifact({ artifactType: '', layers: [layout.put('chart', mediaTypes.chartContent)] })
  layout.list(chart, titled('podinfo', '6.0.0+eu'))
  layout.list(layout.artifact({ artifactType: 'x/y', layers: [] }), titled('licence'))
  // Titles that are no names of a repository.
  for (const title of ['Größe.txt', 'UPPER', 'a b', '-a', 'a..b', 'a/.b'])
    layout.list(layout.artifact({ artifactType: 'x/y', layers: [] }), titled(title))
  await registry.publish(layout)
})
afterEach(() => registry.stop())

interface Page<Reply> {
  readonly status: number
  readonly link: string | undefined
  readonly reply: Reply
}

const nextOf = (link: string | undefined) => /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1]

async function read<Reply>(path: string): Promise<Page<Reply>> {
  const { status, headers, body } = await registry.ask(path)
  return { status, link: headers.link as string | undefined, reply: JSON.parse(body.toString()) as Reply }
}

it('the tags of a name are listed in pages, each with a link to the next', async () => {
  const found: string[] = []
  for (let path: string | undefined = '/v2/tools/app/tags/list?n=2'; path !== undefined;) {
    const page: Page<{ name: string; tags: string[] }> = await read(path)
    expect([page.status, page.reply.name]).toEqual([200, 'tools/app'])
    expect(page.reply.tags.length).toBeLessThanOrEqual(2)
    found.push(...page.reply.tags)
    path = nextOf(page.link)
  }
  expect(found).toEqual(['1', '1.0', '2'])
})

it.each([
  ['/v2/docker.io/tools/app/tags/list', ['1', '1.0']],
  ['/v2/quay.io/tools/app/tags/list', ['1', '2']],
  ['/v2/tools/app/tags/list?ns=quay.io', ['1', '2']],
  ['/v2/tools/app/tags/list?last=1.0', ['2']],
  ['/v2/tools/app/tags/list?last=9', []],
  ['/v2/tools/app/tags/list?n=0', []],
  ['/v2/podinfo/tags/list', ['6.0.0_eu']],
  ['/v2/licence/tags/list', ['latest']],
])('%s lists %j', async (path, tags) => {
  const { status, link, reply } = await read<{ tags: string[] }>(path)
  expect([status, link, reply.tags]).toEqual([200, undefined, tags])
})

it('a list refuses a name that is not here, and an invalid number', async () => {
  expect((await read('/v2/nothing/tags/list')).status).toBe(404)
  for (const n of ['x', '-1', '1.5', '1e3'])
    expect(await read(`/v2/tools/app/tags/list?n=${n}`)).toMatchObject({
      status: 400,
      reply: { errors: [{ code: 'PAGINATION_NUMBER_INVALID' }] },
    })
})

it('a chart and a file are pulled by name and version', async () => {
  for (const [path, type] of [
    ['/v2/podinfo/manifests/6.0.0_eu', mediaTypes.manifest],
    ['/v2/licence/manifests/latest', mediaTypes.manifest],
  ] as const) {
    const { status, headers } = await registry.ask(path)
    expect([path, status, headers['content-type']]).toEqual([path, 200, type])
  }
  expect((await registry.ask('/v2/podinfo/manifests/6.0.0_eu?ns=docker.io')).status).toBe(404)
})

it('the catalog lists what can be pulled, in pages', async () => {
  const all = ['docker.io/tools/app', 'licence', 'podinfo', 'quay.io/tools/app']
  const { reply } = await read<{ repositories: string[] }>('/v2/_catalog')
  expect(reply.repositories).toEqual(all)
  const first = await read<{ repositories: string[] }>('/v2/_catalog?n=3')
  expect([first.reply.repositories, first.link]).toEqual([
    all.slice(0, 3),
    '</v2/_catalog?n=3&last=podinfo>; rel="next"',
  ])
  for (const name of all) expect((await registry.ask(`/v2/${name}/tags/list`)).status).toBe(200)
})

it('what belongs to an image is found, with its type and annotations, and by its type', async () => {
  const path = `/v2/tools/app/referrers/${image.digest}`
  const { headers, body } = await registry.ask(path)
  expect(headers['content-type']).toBe(mediaTypes.index)
  expect(headers['oci-filters-applied']).toBeUndefined()
  const signed = {
    ...{ mediaType: mediaTypes.manifest, digest: signature.digest, size: signature.size },
    ...{ artifactType: 'application/vnd.test.signature', annotations: { by: 'us' } },
  }
  const billed = {
    ...{ mediaType: mediaTypes.manifest, digest: bill.digest, size: bill.size },
    artifactType: 'application/vnd.test.bill',
  }
  const sorted = [signed, billed].sort((a, b) => (a.digest < b.digest ? -1 : 1))
  expect(JSON.parse(body.toString())).toEqual({
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: sorted,
  })
  const filtered = await registry.ask(`${path}?artifactType=application/vnd.test.bill`)
  expect(filtered.headers['oci-filters-applied']).toBe('artifactType')
  expect(JSON.parse(filtered.body.toString())).toMatchObject({ manifests: [billed] })
})

it('what belongs to nothing here is an empty list, and a bad digest is refused', async () => {
  for (const digest of [`sha256:${'0'.repeat(64)}`, `sha512:${'0'.repeat(128)}`])
    expect(await read(`/v2/tools/app/referrers/${digest}`)).toMatchObject({
      status: 200,
      reply: { manifests: [] },
    })
  expect((await read('/v2/tools/app/referrers/sha256:0')).status).toBe(400)
})

it('a long list of what belongs to an image comes in pages', async () => {
  const layout = createLayout()
  const subject = { mediaType: image.mediaType, digest: image.digest, size: image.size }
  const config = layout.put('{}', mediaTypes.emptyConfig)
  for (let index = 0; index < 20; index += 1)
    layout.list(
      layout.putJson(
        {
          ...{ schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [], subject },
          ...{ artifactType: 'a/b', annotations: { index: `${index}`, text: 'x'.repeat(200_000) } },
        },
        mediaTypes.manifest,
      ),
    )
  await registry.publish(layout)
  const found = new Set<string>()
  let pages = 0
  for (
    let path: string | undefined = `/v2/x/referrers/${image.digest}?artifactType=a/b`;
    path !== undefined;
    pages += 1
  ) {
    const page: Page<{ manifests: { digest: string }[] }> = await read(path)
    for (const { digest } of page.reply.manifests) found.add(digest)
    path = nextOf(page.link)
  }
  expect(found.size).toBe(20)
  expect(pages).toBeGreaterThan(2)
})
