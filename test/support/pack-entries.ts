import { randomUUID } from 'node:crypto'
import type { Entry } from './access-entry.ts'
import { packUpload, smallPack, smallProfile, tarOf } from './platform-packs.ts'

/** Makes one in a scope, and names it. */
type Make = (scope: string) => Promise<{ readonly parameter: string }>

/** The operations on packs and cluster profiles in the access matrix. */
export const packEntries = ({
  packIn,
  profileIn,
}: {
  readonly packIn: Make
  readonly profileIn: Make
}): Readonly<Record<string, Entry>> => ({
  'POST /v1/packs': {
    ...{ rule: 'operator in the scope', status: 201 },
    request: async () => packUpload(tarOf(smallPack(`p-${randomUUID()}`))),
  },
  'GET /v1/packs': { rule: 'viewer in the scope', status: 200 },
  'GET /v1/packs/:uid': { rule: 'viewer in the scope', status: 200, request: packIn },
  'DELETE /v1/packs/:uid': { rule: 'admin in the scope', status: 204, request: packIn },

  'POST /v1/clusterprofiles/import': {
    ...{ rule: 'operator in the scope', status: 201 },
    request: async () => ({ payload: smallProfile(`n-${randomUUID()}`) }),
  },
  'GET /v1/clusterprofiles': { rule: 'viewer in the scope', status: 200 },
  'GET /v1/clusterprofiles/:uid': { rule: 'viewer in the scope', status: 200, request: profileIn },
  'DELETE /v1/clusterprofiles/:uid': { rule: 'admin in the scope', status: 204, request: profileIn },
  // Its reply has sensitive values.
  'GET /v1/clusterprofiles/:uid/export': { rule: 'operator in the scope', status: 200, request: profileIn },
  'GET /v1/clusterprofiles/:uid/variables': { rule: 'viewer in the scope', status: 200, request: profileIn },
  'PUT /v1/clusterprofiles/:uid/variables': {
    ...{ rule: 'operator in the scope', status: 204 },
    request: async (scope) => ({ ...(await profileIn(scope)), payload: { variables: [{ name: 'A' }] } }),
  },
})
