import { randomUUID } from 'node:crypto'
import type { Entry, Sent } from './access-entry.ts'
import { right } from './platform-clouds.ts'

/**
 * The operations on clouds in the access matrix.
 * @param make a creation of the administrator in a scope, which has to succeed; gives the uid
 */
export function cloudEntries(
  make: (scope: string, url: string, payload: object) => Promise<string>,
): Readonly<Record<string, Entry>> {
  const metadata = () => ({ name: `n-${randomUUID()}` })
  const account = () => ({ metadata: metadata(), spec: right })
  const accountIn = (scope: string) => make(scope, '/v1/cloudaccounts/vendor', account())
  const configOf = async (scope: string) => ({
    metadata: metadata(),
    spec: {
      cloudAccountRef: { uid: await accountIn(scope) },
      // As the pool of the clusters is called.
      machinePoolConfig: [{ name: 'control-plane-pool', tags: ['plant'] }],
    },
  })
  const configIn = async (scope: string) => make(scope, '/v1/cloudconfigs/vendorke', await configOf(scope))
  const named =
    (thing: (scope: string) => Promise<string>) =>
    async (scope: string): Promise<Sent> => ({
      parameter: await thing(scope),
    })
  return {
    'POST /v1/clouds/vendor/account/validate': {
      ...{ rule: 'operator in the scope', status: 204 },
      request: async () => ({ payload: right }),
    },
    'POST /v1/cloudaccounts/vendor': {
      ...{ rule: 'admin in the scope', status: 201 },
      request: async () => ({ payload: account() }),
    },
    'GET /v1/cloudaccounts/vendor': { rule: 'viewer in the scope', status: 200 },
    'GET /v1/cloudaccounts/vendor/:uid': {
      ...{ rule: 'viewer in the scope', status: 200, request: named(accountIn) },
    },
    'DELETE /v1/cloudaccounts/vendor/:uid': {
      ...{ rule: 'admin in the scope', status: 204, request: named(accountIn) },
    },
    'POST /v1/cloudconfigs/vendorke': {
      ...{ rule: 'operator in the scope', status: 201 },
      request: async (scope) => ({ payload: await configOf(scope) }),
    },
    'GET /v1/cloudconfigs/vendorke': { rule: 'viewer in the scope', status: 200 },
    'GET /v1/cloudconfigs/vendorke/:configUid': {
      ...{ rule: 'viewer in the scope', status: 200, request: named(configIn) },
    },
    'DELETE /v1/cloudconfigs/vendorke/:configUid': {
      ...{ rule: 'admin in the scope', status: 204, request: named(configIn) },
    },
    'GET /v1/cloudconfigs/vendorke/:configUid/machinePools/:machinePoolName/machines': {
      ...{ rule: 'viewer in the scope', status: 200, request: named(configIn) },
    },
  }
}
