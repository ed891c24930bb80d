import { expect, it } from 'vitest'
import type { RouteTable } from '../../../src/api/route-table.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

// Changes of a single resource that do not ask for its state, and why. All others honour If-Match.
const unconditional: Readonly<Record<string, string>> = {
  'PATCH /v1/edgehosts/:uid/health': 'a heartbeat',
  'PATCH /v1/edgehosts/:uid/packs/status': 'a report of the host, which alone knows it',
  'PUT /v1/spectroclusters/:uid/heartbeat': 'a heartbeat',
  'PATCH /v1/spectroclusters/:uid/status/conditions': 'a report of the host, which alone knows it',
  'PATCH /v1/spectroclusters/:uid/packs/status': 'a report of the host, which alone knows it',
  'PATCH /v1/edge-mgmt/content/uploads/:uid/blobs/:digest': 'Content-Range names the place of the bytes',
}

/** Reads of a single resource, and changes of it or of a part of it. */
function read({ routes }: RouteTable) {
  const all = routes.filter(({ method }) => ['GET', 'PUT', 'PATCH', 'DELETE'].includes(method))
  const singles = new Set(
    all
      .filter(({ url }) => /\/(:\w+|cluster|kubeconfig|management-interface)$/.test(url))
      .map(({ url }) => url),
  )
  const changes = all.filter(
    ({ method, url }) =>
      method !== 'GET' && [...singles].some((single) => `${url}/`.startsWith(`${single}/`)),
  )
  const isChanged = (single: string) => changes.some(({ url }) => `${url}/`.startsWith(`${single}/`))
  const reads = all.filter(({ method, url }) => method === 'GET' && singles.has(url) && isChanged(url))
  return { reads, changes }
}

it('each single resource of both programs that callers change has an ETag, and each change of it honours If-Match', async () => {
  const [edge, platform] = [await createTestEdge(), await createTestPlatform()]
  const tables = [read(edge.routes), read(platform.rooms.api.table)]
  await Promise.all([edge.stop(), platform.close()])
  const without = (
    routes: readonly { readonly method: string; readonly url: string; readonly hasEtag: boolean }[],
  ) => routes.filter(({ hasEtag }) => !hasEtag).map(({ method, url }) => `${method} ${url}`)
  for (const { reads } of tables) expect(reads.length).toBeGreaterThan(2)
  expect(tables.flatMap(({ reads }) => without(reads))).toEqual([])
  // A session has no read of its own.
  const listed = [
    ...Object.keys(unconditional),
    'DELETE /v1/users/sessions/:uid',
    // Listed with the others; once it is gone there is nothing to cancel.
    'DELETE /v1/edge-mgmt/edgehosts/current/actions/:uid',
    'PATCH /v1/auth/password/:passwordToken/activate',
  ]
  const ofResources = tables.flatMap(({ changes }) => without(changes))
  expect(ofResources.filter((each) => !listed.includes(each))).toEqual([])
  expect(Object.keys(unconditional).filter((each) => !ofResources.includes(each))).toEqual([])
})
