import { playCloud, type PlayedCloud } from './played-cloud.ts'
import { createTestPlatform, type TestPlatformOptions } from './test-platform.ts'

type Method = 'GET' | 'POST' | 'DELETE'
type Headers = Readonly<Record<string, string>>

export const rightId = 'right-id'
export const rightSecret = 'right-secret-of-the-credential'
export const right = { secretId: rightId, secretKey: rightSecret }
const password = 'a long password'

/** A platform with a played cloud, and an administrator. */
export interface CloudWorld {
  readonly platform: Awaited<ReturnType<typeof createTestPlatform>>
  readonly cloud: PlayedCloud
  /** Turns the clock of the platform; the administrator signs in again. */
  turn(ms: number): Promise<void>
  /** A request of the administrator; `code` is the status with the code of an error. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the type of the body
  ask<Body>(
    method: Method,
    url: string,
    payload?: object,
    more?: Headers,
  ): Promise<{
    readonly code: string
    readonly message: string
    readonly body: Body
    readonly headers: Headers
  }>
  /** A creation that has to succeed; gives the uid. */
  make(url: string, payload: object, more?: Headers): Promise<string>
  /** An account with credentials that no other one has, so that the platform has no token of them yet. */
  newAccount(): Promise<{ readonly uid: string; readonly secretId: string }>
  /** A cloud configuration. @param pools name -> tags. @param account by default a new one */
  configure(pools: Readonly<Record<string, readonly string[]>>, account?: string): Promise<string>
  close(): Promise<void>
}

export const machinesOf = (config: string, pool: string) =>
  `/v1/cloudconfigs/vendorke/${config}/machinePools/${pool}/machines`

/** @param options of the platform; its state may be one that has the administrator already */
export async function createCloudWorld(options: TestPlatformOptions = {}): Promise<CloudWorld> {
  const cloud = await playCloud()
  const platform = await createTestPlatform({ ...options, flags: [...cloud.flags, ...(options.flags ?? [])] })
  const email = 'root@plant.example'
  if (platform.rooms.people.users.all().length === 0) await platform.addUser(email, password, ['admin'])
  let headers = await platform.signIn(email, password)
  let names = 0
  const world: CloudWorld = {
    ...{ platform, cloud },
    async turn(ms) {
      platform.clock.turn(ms)
      headers = await platform.signIn(email, password)
    },
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the type of the body
    async ask<Body>(method: Method, url: string, payload?: object, more: Headers = {}) {
      const reply = await platform.app.inject({
        ...{ method, url, headers: { ...headers, ...more } },
        ...(payload ? { payload } : {}),
      })
      const body = (reply.body === '' ? undefined : reply.json()) as Body
      const { code = '', message = '' } = { ...(body as { code?: string; message?: string } | undefined) }
      return {
        ...{ code: `${reply.statusCode} ${reply.statusCode < 400 ? '' : code}`.trim(), message, body },
        headers: reply.headers as Headers,
      }
    },
    async make(url, payload, more) {
      const { code, body } = await world.ask<{ uid: string }>('POST', url, payload, more)
      if (code !== '201') throw new Error(`${code} ${JSON.stringify(body)}`)
      return body.uid
    },
    async newAccount() {
      const secretId = `id-${(names += 1)}`
      cloud.credentials.set(secretId, rightSecret)
      const entity = { metadata: { name: secretId }, spec: { secretId, secretKey: rightSecret } }
      return { uid: await world.make('/v1/cloudaccounts/vendor', entity), secretId }
    },
    async configure(pools, account) {
      const metadata = { name: `config ${(names += 1)}` }
      const uid = account ?? (await world.newAccount()).uid
      const machinePoolConfig = Object.entries(pools).map(([name, tags]) => ({ name, tags }))
      return world.make('/v1/cloudconfigs/vendorke', {
        ...{ metadata, spec: { cloudAccountRef: { uid }, machinePoolConfig } },
      })
    },
    async close() {
      await platform.close()
      await cloud.close()
    },
  }
  return world
}
