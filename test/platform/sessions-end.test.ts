import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTls } from '../support/https-server.ts'
import { createCloudWorld, right, type CloudWorld } from '../support/platform-clouds.ts'
import { packUpload, smallPack, smallProfile, tarOf } from '../support/platform-packs.ts'
import { joinedHost } from '../support/platform-clusters.ts'
import { waitFor } from '../support/wait-for.ts'

const password = 'a long password'
const folder = mkdtempSync(join(tmpdir(), 'sessions-end-'))
const socketPath = join(folder, 'platform.sock')
let world: CloudWorld
let admin: Record<string, string>
let projectUid: string
let names = 0
const newName = () => `n-${(names += 1)}`

beforeAll(async () => {
  world = await createCloudWorld({ socket: socketPath })
  await world.platform.start()
  admin = await world.platform.signIn('root@plant.example', password)
})
afterAll(async () => {
  await world.close()
  rmSync(folder, { recursive: true, force: true })
})

type Fields = Readonly<Record<string, string>>

/** A request of which a half is sent, and which the platform reads. */
interface Slow {
  /** Sends the rest. */
  finish(): void
  /** Its status, with the code of an error. */
  reply(): Promise<string>
}

async function begin(
  method: string,
  path: string,
  fields: Fields,
  payload: Buffer,
  at?: Socket,
): Promise<Slow> {
  const { port } = world.platform.app.server.address() as AddressInfo
  const ca = readFileSync(join(world.platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
  const socket = at ?? (await openTls(port, ca)).socket
  let received = ''
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()))
  socket.on('error', () => undefined)
  const head = { host: 'localhost', ...fields, 'content-length': payload.length, expect: '100-continue' }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}`)
  socket.write(`${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`)
  await waitFor(() => expect(received).toContain('HTTP/1.1 100 '))
  const half = payload.length >> 1
  socket.write(payload.subarray(0, half))
  return {
    finish: () => void socket.write(payload.subarray(half)),
    async reply() {
      const last = () => received.split('HTTP/1.1 ').at(-1) ?? ''
      await waitFor(() => expect(last()).toMatch(/^204 |^(?!100)[^]*\}$/))
      socket.destroy()
      return [last().slice(0, 3), /"code":"(\w+)"/.exec(last())?.[1]].filter(Boolean).join(' ')
    },
  }
}

const onDisk = (name: string) => {
  const at = join(world.platform.stateDirectory, name)
  return [...readdirSync(at), ...readdirSync(join(at, 'staging'))].filter((each) => each !== 'staging').sort()
}

/** An upload of a pack of which half has arrived. */
async function upload(fields: Fields, at?: Socket) {
  const before = onDisk('packs')
  const { payload, headers } = packUpload(tarOf(smallPack(newName())))
  const slow = await begin('POST', '/v1/packs', { ...fields, ...headers }, payload, at)
  await waitFor(() => expect(onDisk('packs').length).toBe(before.length + 1))
  return { ...slow, leavesNothing: () => waitFor(() => expect(onDisk('packs')).toEqual(before)) }
}

/** A user with roles for the tenant, and a token. */
async function newUser(roles: ('operator' | 'admin')[] = ['operator']) {
  const email = `${newName()}@plant.example`
  const uid = await world.platform.addUser(email, password, roles)
  return { uid, email, ...(await world.platform.signIn(email, password)) }
}
const ask = async (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, payload?: object) => {
  const reply = await world.platform.app.inject({
    ...{ method, url, headers: admin },
    ...(payload ? { payload } : {}),
  })
  expect([reply.body, reply.statusCode < 300]).toEqual([reply.body, true])
  return reply.body === '' ? {} : reply.json<{ uid: string; apiKey: string; Authorization: string }>()
}
const newProject = async (users: object[] = []) => {
  const payload = { metadata: { name: newName() }, spec: { users } }
  return ((await ask('POST', '/v1/projects', payload)) as { uid: string }).uid
}
async function newKey(userUid: string) {
  const expiry = new Date(Date.now() + 86_400_000).toISOString()
  const payload = { metadata: { name: newName() }, spec: { expiry, userUid } }
  return (await ask('POST', '/v1/apiKeys', payload)) as { uid: string; apiKey: string }
}

describe('an upload in flight', () => {
  it('ends with 401 when its user is deleted, and nothing is kept', async () => {
    const { uid, authorization } = await newUser()
    const slow = await upload({ authorization })
    await ask('DELETE', `/v1/users/${uid}`)
    expect(await slow.reply()).toBe('401 Unauthenticated')
    await slow.leavesNothing()
  })

  it('ends when its token is revoked, also one that was exchanged meanwhile', async () => {
    for (const isExchanged of [false, true]) {
      const { authorization } = await newUser()
      const slow = await upload({ authorization })
      let token = authorization
      if (isExchanged) {
        const url = `/v1/auth/refresh/${authorization}`
        const reply = await world.platform.app.inject({ method: 'GET', url })
        token = reply.json<{ Authorization: string }>().Authorization
      }
      await ask('POST', '/v1/users/auth/tokens/revoke', { tokens: [token] })
      expect(await slow.reply()).toBe('401 Unauthenticated')
      await slow.leavesNothing()
    }
  })

  it('outlasts the exchange of its token, the end of another session, and the expiry of its token', async () => {
    const { email, authorization } = await newUser()
    const other = await world.platform.signIn(email, password)
    const slow = await upload({ authorization })
    const url = `/v1/auth/refresh/${authorization}`
    expect((await world.platform.app.inject({ method: 'GET', url })).statusCode).toBe(200)
    await ask('POST', '/v1/users/auth/tokens/revoke', { tokens: [other.authorization] })
    await world.turn(1_000_000)
    admin = await world.platform.signIn('root@plant.example', password)
    // Whatever ends others has each looked at.
    await ask('PUT', `/v1/users/${(await newUser()).uid}/roles`, { roles: ['viewer'] })
    slow.finish()
    expect(await slow.reply()).toBe('201')
  })

  it('ends when the password of its user is set anew; that of a key of the user does not', async () => {
    const { uid, email, authorization } = await newUser()
    const [byToken, byKey] = [
      await upload({ authorization }),
      await upload({ apiKey: (await newKey(uid)).apiKey }),
    ]
    await ask('PATCH', '/v1/users/password/change', {
      ...{ emailId: email, currentPassword: password, newPassword: 'another long password' },
    })
    expect(await byToken.reply()).toBe('401 Unauthenticated')
    byKey.finish()
    expect(await byKey.reply()).toBe('201')
  })

  it.each([
    ['switched off', (uid: string) => ask('PUT', `/v1/apiKeys/${uid}/state`, { isActive: false })],
    ['deleted', (uid: string) => ask('DELETE', `/v1/apiKeys/${uid}`)],
  ])('ends when its key is %s; that of another key of the user does not', async (_, end) => {
    const { uid } = await newUser()
    const [key, other] = [await newKey(uid), await newKey(uid)]
    const [slow, continues] = [await upload({ apiKey: key.apiKey }), await upload({ apiKey: other.apiKey })]
    await end(key.uid)
    expect(await slow.reply()).toBe('401 Unauthenticated')
    continues.finish()
    expect(await continues.reply()).toBe('201')
  })

  it('ends with 403 when its user loses the role for the tenant, and not when it gets a higher one', async () => {
    const { uid, authorization } = await newUser()
    const slow = await upload({ authorization })
    await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['admin'] })
    await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['operator'] })
    await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['viewer'] })
    expect(await slow.reply()).toBe('403 Forbidden')
    await slow.leavesNothing()
  })

  it('ends with the refusal of the guard when its user loses the role in the project', async () => {
    for (const [roles, refusal] of [
      [['viewer'], '403 Forbidden'],
      [undefined, '404 ProjectNotFound'],
    ] as const) {
      const { uid, authorization } = await newUser([])
      projectUid = await newProject([{ userId: uid, roles: ['operator'] }])
      const slow = await upload({ authorization, projectuid: projectUid })
      const project = (
        await world.platform.app.inject({ url: `/v1/projects/${projectUid}`, headers: admin })
      ).json<{
        metadata: object
      }>()
      const users = roles ? [{ userId: uid, roles }] : []
      await ask('PUT', `/v1/projects/${projectUid}`, { ...project, spec: { users } })
      expect(await slow.reply()).toBe(refusal)
      await slow.leavesNothing()
    }
  })

  it('ends when the project is deleted, with 404', async () => {
    const { authorization } = await newUser()
    projectUid = await newProject()
    const slow = await upload({ authorization, projectuid: projectUid })
    await ask('DELETE', `/v1/projects/${projectUid}`)
    expect(await slow.reply()).toBe('404 ProjectNotFound')
    await slow.leavesNothing()
  })
})

describe('a request whose body arrives', () => {
  it('ends with its user', async () => {
    const { uid, authorization } = await newUser(['admin'])
    const name = newName()
    const payload = Buffer.from(JSON.stringify({ metadata: { name } }))
    const fields = { authorization, 'content-type': 'application/json' }
    const slow = await begin('POST', '/v1/projects', fields, payload)
    await ask('DELETE', `/v1/users/${uid}`)
    expect(await slow.reply()).toBe('401 Unauthenticated')
  })

  it('of a host ends when the host is removed, or exists twice, and not when it logs in again', async () => {
    const facts = Buffer.from(
      JSON.stringify({ spec: { device: { archType: 'amd64' }, host: { hostAddress: '192.0.2.7' } } }),
    )
    const start = (host: { readonly uid: string; readonly token: string }) => {
      const fields = { authorization: host.token, 'content-type': 'application/json' }
      return begin('PUT', `/v1/edgehosts/${host.uid}`, fields, facts)
    }
    const host = await joinedHost(world.platform, admin)
    const continues = await start(host)
    const copy = host.copy()
    await host.logIn()
    continues.finish()
    expect(await continues.reply()).toBe('204')

    const twice = await start(host)
    expect((await copy.logIn()).json.code).toBe('HostExistsTwice')
    expect(await twice.reply()).toBe('401 Unauthenticated')

    const other = await joinedHost(world.platform, admin)
    const removed = await start(other)
    await ask('DELETE', `/v1/edgehosts/${other.uid}`)
    expect(await removed.reply()).toBe('401 Unauthenticated')
  })
})

describe('what root sends for a project that is deleted meanwhile', () => {
  const json = { 'content-type': 'application/json' }
  const bytes = (value: object) => Buffer.from(JSON.stringify(value))
  const count = (table: string) =>
    world.platform.rooms.state.database.sql
      .prepare(`SELECT count(*) AS count FROM ${table} WHERE project_uid = ?`)
      .get(projectUid)

  it.each([
    ['a pack', 'pack', '/v1/packs', () => packUpload(tarOf(smallPack(newName())))],
    [
      ...['a profile', 'cluster_profile', '/v1/clusterprofiles/import'],
      () => ({ headers: json, payload: bytes(smallProfile(newName())) }),
    ],
    [
      ...['a cloud account', 'cloud_account', '/v1/cloudaccounts/vendor'],
      () => ({ headers: json, payload: bytes({ metadata: { name: newName() }, spec: right }) }),
    ],
    [
      ...['a cloud configuration', 'cloud_config', '/v1/cloudconfigs/vendorke'],
      (accountUid: string) => ({
        headers: json,
        payload: bytes({
          metadata: { name: newName() },
          spec: {
            cloudAccountRef: { uid: accountUid },
            machinePoolConfig: [{ name: 'workers', tags: ['a=b'] }],
          },
        }),
      }),
    ],
  ] as [string, string, string, (accountUid: string) => { headers: Fields; payload: Buffer }][])(
    '%s is refused as for an unknown project, and nothing is kept',
    async (_, table, path, make) => {
      const { uid: accountUid } = await world.newAccount()
      projectUid = await newProject()
      const { headers, payload } = make(accountUid)
      const before = [onDisk('packs'), onDisk('profiles')]
      const fields = { ...headers, projectuid: projectUid }
      const slow = await begin('POST', path, fields, payload, connect(socketPath))
      await ask('DELETE', `/v1/projects/${projectUid}`)
      slow.finish()
      expect(await slow.reply()).toBe('404 ProjectNotFound')
      expect(count(table)).toEqual({ count: 0 })
      await waitFor(() => expect([onDisk('packs'), onDisk('profiles')]).toEqual(before))
    },
  )
})
