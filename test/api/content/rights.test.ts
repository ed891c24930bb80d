import { afterAll, beforeAll, expect, it } from 'vitest'
import { contentClient, imageLayout, noReserve } from '../../support/content-uploads.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

const content = '/v1/edge-mgmt/content'
const current = '/v1/edge-mgmt/edgehosts/current'
const cluster = '/v1/edge-mgmt/cluster/registry'
// Written by hand: a new route of the content has to be added here.
const reads = [
  `${content}/bundles`,
  `${content}/bundles/:uid`,
  `${content}/bundles/:uid/entries`,
  `${content}/images`,
  `${content}/registry`,
  `${content}/uploads`,
  `${content}/uploads/:uid`,
  `${content}/uploads/:uid/missing`,
  `${content}/usage`,
  `${cluster}/content/details`,
  `${cluster}/content/sync-status/details`,
  `${current}/actions/content/signing-public-key`,
  `${current}/uploaded-content/details`,
]
/** And what only administrators may read. */
const writes = [
  ['GET', `${content}/registry/password`],
  ['DELETE', `${content}/bundles/:uid`],
  ['DELETE', `${content}/bundles/:uid?dryRun=true`],
  ['POST', `${content}/uploads`],
  ['DELETE', `${content}/uploads/:uid`],
  ['POST', `${content}/uploads/:uid/actions/publish`],
  ['PATCH', `${content}/uploads/:uid/blobs/:digest`],
  ['POST', `${current}/actions/upload-content`],
] as const

let edge: TestEdge
beforeAll(async () => {
  edge = await createTestEdge({ content: noReserve })
})
afterAll(() => edge.stop())

it('the routes of the content are these and no others', () => {
  const isOfContent = (url: string) => url.startsWith(content) || url.includes('content')
  const declared = edge.routes.routes
    .filter(({ method, url }) => method !== 'HEAD' && isOfContent(url))
    .map(({ method, url, access }) => `${access} ${method} ${url}`)
  const known = [
    ...reads.map((url) => `viewer GET ${url}`),
    ...writes.filter(([, url]) => !url.includes('?')).map(([method, url]) => `admin ${method} ${url}`),
  ]
  expect(declared.sort()).toEqual(known.sort())
})

it('a viewer reads bundles and unfinished uploads, and changes nothing', async () => {
  const admin = contentClient(edge, (await edge.login('alice')).access)
  const published = (await admin.upload(imageLayout())).json<{ uid: string }>().uid
  const other = imageLayout(['another layer'], 'registry.example/other:1')
  const begun = (await admin.begin(other.indexFile())).json<{ uid: string }>().uid
  const viewer = (await edge.login('bob')).access
  const [digest = ''] = other.blobs.keys()
  const concrete = (url: string) =>
    url.replace(':uid', url.includes('/uploads') ? begun : published).replace(':digest', `sha256:${digest}`)

  for (const url of reads) {
    const { statusCode } = await edge.get(concrete(url), viewer)
    // There is no signing key.
    expect(statusCode, url).toBe(url.endsWith('signing-public-key') ? 404 : 200)
  }
  for (const [method, url] of writes) {
    const headers = { authorization: viewer }
    const reply = await edge.app.inject({ method, url: concrete(url), headers })
    expect([reply.statusCode, reply.json<{ code: string }>().code], `${method} ${url}`).toEqual([
      403,
      'Forbidden',
    ])
  }
  const mine = contentClient(edge, viewer)
  expect((await mine.begin(imageLayout(['mine']).indexFile())).statusCode).toBe(403)
  expect((await mine.send(begun, other.blobs.get(digest)!)).statusCode).toBe(403)
  const { items } = (await admin.list()).json<{ items: { uid: string; receivedBytes: number }[] }>()
  expect(items).toMatchObject([{ uid: begun, receivedBytes: 0 }])
  expect((await edge.get(`${content}/bundles/${published}`, viewer)).statusCode).toBe(200)
})
