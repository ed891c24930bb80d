import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  callers,
  expected,
  users,
  type Entry,
  type Role,
  type Roles,
  type Sent,
} from '../support/access-entry.ts'
import { cloudEntries } from '../support/cloud-entries.ts'
import { clusterEntries } from '../support/cluster-entries.ts'
import { readDocument } from '../support/api-document.ts'
import { packEntries } from '../support/pack-entries.ts'
import { playCloud, type PlayedCloud } from '../support/played-cloud.ts'
import { playEdgeHost, registrationBody, type PlayedEdgeHost } from '../support/played-edge-host.ts'
import {
  clusterEntity,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../support/platform-clusters.ts'
import { newPack, newProfile } from '../support/platform-packs.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { minuteMs } from '../support/turning-clock.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'
type Headers = Readonly<Record<string, string>>

const password = 'a long password'
const email = (name: string) => `${name.replaceAll(' ', '-')}@plant.example`
const scopes = ['the tenant', 'the project'] as const

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let cloud: PlayedCloud
let adminHeaders: Headers
let projectUid: string
let host: PlayedEdgeHost
let clusterProfileUid: string
let hostCluster: string
const headersOf = new Map<string, Headers>()

async function ask(method: Method, url: string, headers: Headers, payload?: object) {
  // Not loopback, for which /metrics has another rule.
  const remoteAddress = '192.0.2.7'
  return platform.app.inject({ method, url, headers, remoteAddress, ...(payload ? { payload } : {}) })
}

async function asAdmin(method: Method, url: string, payload?: object) {
  const reply = await ask(method, url, adminHeaders, payload)
  if (reply.statusCode >= 300) throw new Error(`${method} ${url}: ${reply.body}`)
  return reply.body === '' || reply.body === 'null' ? {} : reply.json<Partial<Made>>()
}

const made = async (url: string, payload: object) => (await asAdmin('POST', url, payload)) as Made
interface Made {
  readonly uid: string
  readonly token: string
  readonly apiKey: string
}

const expiry = () => new Date(platform.clock.now() + 60 * minuteMs).toISOString()
const newProject = () => made('/v1/projects', { metadata: { name: `p-${randomUUID()}` } })
const newUser = () => made('/v1/users', { spec: { emailId: `u-${randomUUID()}@plant.example` } })
const newKey = () =>
  made('/v1/apiKeys', { metadata: { name: `k-${randomUUID()}` }, spec: { expiry: expiry() } })
const newToken = (defaultProjectUid = '') =>
  made('/v1/edgehosts/tokens', { metadata: { name: `t-${randomUUID()}` }, spec: { defaultProjectUid } })

async function newHost(defaultProjectUid: string) {
  const played = playEdgeHost(platform)
  const { token } = await newToken(defaultProjectUid)
  const { status, text } = await played.register(token, `h-${randomUUID()}`)
  if (status !== 200) throw new Error(text)
  return played
}

const registration = async (): Promise<Sent> => ({ payload: registrationBody((await newToken()).token) })

const scopeHeaders = (scope: string): Headers =>
  scope === 'the project' ? { ...adminHeaders, projectuid: projectUid } : adminHeaders
const packIn = async (scope: string) => ({ parameter: await newPack(platform, scopeHeaders(scope)) })
const profileIn = async (scope: string) => ({ parameter: await newProfile(platform, scopeHeaders(scope)) })

const scopeUid = (scope: string) => (scope === 'the project' ? projectUid : '')
const hostIn = async (scope: string) => (await newHost(scopeUid(scope))).uid
const clusters = new Map<string, string>()
/** A cluster of the scope with a kubeconfig, the same one for each use. */
async function clusterIn(scope: string, use: string): Promise<string> {
  const known = clusters.get(scope + use)
  if (known !== undefined) return known
  const played = await joinedHost(platform, adminHeaders, { projectUid: scopeUid(scope) })
  const uid = await newCluster(scope, played.uid)
  const url = `/v1/spectroclusters/${uid}/assets/kubeconfig`
  await ask('PUT', url, { authorization: played.token }, { kubeconfig: 'a: 1' })
  clusters.set(scope + use, uid)
  return uid
}
async function madeIn(scope: string, url: string, payload: object): Promise<string> {
  const reply = await ask('POST', url, scopeHeaders(scope), payload)
  if (reply.statusCode !== 201) throw new Error(reply.body)
  return reply.json<Made>().uid
}
const newCluster = (scope: string, hostUid: string) =>
  madeIn(scope, '/v1/spectroclusters/edge-native', clusterEntity(hostUid, clusterProfileUid))
const sends = (payload: () => object) => async (): Promise<Sent> => ({ payload: payload() })
const names =
  (thing: () => Promise<{ readonly uid: string }>, payload?: object) => async (): Promise<Sent> => ({
    parameter: (await thing()).uid,
    ...(payload ? { payload } : {}),
  })

/** Every operation that is not HEAD. A new route has to be added here. */
const entries: Readonly<Record<string, Entry>> = {
  'GET /': { rule: 'open', status: 200, isPage: true },
  'GET /console/:file': {
    ...{ rule: 'open', status: 200, isPage: true },
    request: async () => ({ parameter: 'index.html' }),
  },
  'GET /v1/health/ping': { rule: 'open', status: 200 },
  'GET /v1/health/ready': { rule: 'open', status: 200 },
  'GET /openapi.json': { rule: 'open', status: 200 },
  'GET /metrics': { rule: 'admin of the tenant', status: 200 },
  'GET /v1/system/status': { rule: 'admin of the tenant', status: 200 },

  'POST /v1/auth/authenticate': {
    ...{ rule: 'open', status: 200 },
    request: sends(() => ({ emailId: email('viewer'), password })),
  },
  'GET /v1/auth/refresh/:token': {
    ...{ rule: 'open', status: 200 },
    request: async () => ({ parameter: (await platform.signIn(email('viewer'), password)).authorization }),
  },
  'PATCH /v1/auth/password/:passwordToken/activate': {
    ...{ rule: 'open', status: 204 },
    async request() {
      const { uid } = await newUser()
      const link = platform.rooms.people.links.takeUnshown(uid) ?? ''
      return { parameter: link.split('/').at(-2) ?? '', payload: { password } }
    },
  },
  'POST /v1/auth/user/password/reset': {
    ...{ rule: 'open', status: 204 },
    request: sends(() => ({ emailId: email('viewer') })),
  },
  'PATCH /v1/users/password/change': {
    ...{ rule: 'open', status: 204 },
    request: sends(() => ({ emailId: email('changing'), currentPassword: password, newPassword: password })),
  },
  'POST /v1/users/auth/tokens/revoke': {
    ...{ rule: 'any user', status: 204 },
    request: sends(() => ({ tokens: ['no token'] })),
  },

  'POST /v1/users': {
    ...{ rule: 'admin of the tenant', status: 201 },
    request: sends(() => ({ spec: { emailId: `n-${randomUUID()}@plant.example` } })),
  },
  'GET /v1/users': { rule: 'admin of the tenant', status: 200 },
  'GET /v1/users/info': { rule: 'any user', status: 200 },
  'GET /v1/users/:uid': { rule: 'admin of the tenant', status: 200, request: names(newUser) },
  'DELETE /v1/users/:uid': { rule: 'admin of the tenant', status: 204, request: names(newUser) },
  'PUT /v1/users/:uid/roles': {
    ...{ rule: 'admin of the tenant', status: 204 },
    request: names(newUser, { roles: ['viewer'] }),
  },
  'POST /v1/users/:uid/activation': {
    ...{ rule: 'admin of the tenant', status: 200, refusesKeys: true },
    request: names(newUser),
  },

  'POST /v1/apiKeys': {
    ...{ rule: 'admin of the tenant', status: 201, refusesKeys: true },
    request: sends(() => ({ metadata: { name: `n-${randomUUID()}` }, spec: { expiry: expiry() } })),
  },
  'GET /v1/apiKeys': { rule: 'admin of the tenant', status: 200 },
  'GET /v1/apiKeys/:uid': { rule: 'admin of the tenant', status: 200, request: names(newKey) },
  'PUT /v1/apiKeys/:uid': {
    ...{ rule: 'admin of the tenant', status: 204, refusesKeys: true },
    request: names(newKey, { metadata: { labels: { a: 'b' } } }),
  },
  'PUT /v1/apiKeys/:uid/state': {
    ...{ rule: 'admin of the tenant', status: 204, refusesKeys: true },
    request: names(newKey, { isActive: false }),
  },
  'DELETE /v1/apiKeys/:uid': {
    ...{ rule: 'admin of the tenant', status: 204, refusesKeys: true },
    request: names(newKey),
  },

  'POST /v1/projects': {
    ...{ rule: 'admin of the tenant', status: 201 },
    request: sends(() => ({ metadata: { name: `n-${randomUUID()}` } })),
  },
  'GET /v1/projects': { rule: 'any user', status: 200 },
  // Of a project where nobody has a role but for the tenant; `projects.test.ts` has those of others.
  'GET /v1/projects/:uid': { rule: 'viewer of the tenant', status: 200, request: names(newProject) },
  'PUT /v1/projects/:uid': {
    ...{ rule: 'admin of the tenant', status: 204 },
    async request() {
      const name = `n-${randomUUID()}`
      const { uid } = await made('/v1/projects', { metadata: { name } })
      return { parameter: uid, payload: { metadata: { name, labels: { a: 'b' } } } }
    },
  },
  'DELETE /v1/projects/:uid': { rule: 'admin of the tenant', status: 204, request: names(newProject) },

  'POST /v1/edgehosts/tokens': {
    ...{ rule: 'admin of the tenant', status: 201 },
    request: sends(() => ({ metadata: { name: `n-${randomUUID()}` } })),
  },
  'GET /v1/edgehosts/tokens': { rule: 'admin of the tenant', status: 200 },
  'GET /v1/edgehosts/tokens/:uid': { rule: 'admin of the tenant', status: 200, request: names(newToken) },
  'PUT /v1/edgehosts/tokens/:uid': {
    ...{ rule: 'admin of the tenant', status: 204 },
    request: names(newToken, { spec: { maximumHosts: 3 } }),
  },
  'PUT /v1/edgehosts/tokens/:uid/state': {
    ...{ rule: 'admin of the tenant', status: 204 },
    request: names(newToken, { isActive: false }),
  },
  'DELETE /v1/edgehosts/tokens/:uid': { rule: 'admin of the tenant', status: 204, request: names(newToken) },

  'POST /v1/edgehosts/register': { rule: 'open', status: 200, request: registration },
  'POST /v1/edgehosts/registers': { rule: 'open', status: 200, request: registration },
  // The first answer to a host is a challenge.
  'POST /v1/auth/services/edge/login': {
    ...{ rule: 'open', status: 401 },
    request: sends(() => ({ edgeHostUid: host.uid })),
  },
  'GET /v1/edgehosts': { rule: 'viewer in the scope', status: 200 },
  'GET /v1/edgehosts/metadata': { rule: 'viewer in the scope', status: 200 },
  'GET /v1/edgehosts/:uid': {
    ...{ rule: 'viewer in the scope', status: 200 },
    request: async (scope) => ({ parameter: await hostIn(scope) }),
  },
  'PATCH /v1/edgehosts/:uid/health': {
    ...{ rule: 'host', status: 204 },
    request: async () => ({
      parameter: host.uid,
      payload: { agentVersion: '1.2.3', message: '', state: 'healthy' },
    }),
  },
  'PUT /v1/edgehosts/:uid': {
    ...{ rule: 'host', status: 204 },
    request: async () => ({
      parameter: host.uid,
      payload: { spec: { device: { archType: 'amd64' }, host: { hostAddress: '192.0.2.7' } } },
    }),
  },
  'PUT /v1/edgehosts/:uid/meta': {
    ...{ rule: 'operator in the scope', status: 204 },
    request: async (scope) => ({
      parameter: await hostIn(scope),
      payload: { metadata: { labels: { a: 'b' } } },
    }),
  },
  'DELETE /v1/edgehosts/:uid': {
    ...{ rule: 'admin in the scope', status: 204 },
    request: async (scope) => ({ parameter: await hostIn(scope) }),
  },
  'PUT /v1/edgehosts/:uid/duplicate': {
    ...{ rule: 'admin in the scope', status: 204 },
    request: async (scope) => ({ parameter: await hostIn(scope), payload: { action: 'acceptNext' } }),
  },
  'POST /v1/events/components/bulk': {
    ...{ rule: 'host', status: 201 },
    request: sends(() => [
      {
        metadata: { uid: randomUUID(), creationTimestamp: '2026-11-01T08:00:00Z' },
        ...{ reason: 'Tried', severity: 'Normal', message: 'tried' },
      },
    ]),
  },
  'GET /v1/events/components': { rule: 'viewer in the scope', status: 200 },

  ...packEntries({ packIn, profileIn }),

  ...clusterEntries({
    hostIn,
    profileUid: () => clusterProfileUid,
    clusterIn,
    hostUid: () => host.uid,
    ofHost: () => hostCluster,
  }),

  ...cloudEntries(madeIn),

  'GET /v1/audits': { rule: 'admin of the tenant', status: 200 },
  'GET /v1/audits/verify': { rule: 'admin of the tenant', status: 200 },
  'GET /v1/audits/download': { rule: 'admin of the tenant', status: 200 },
}

const { operations: documented, problemsOf } = readDocument(
  readFileSync(join(import.meta.dirname, '../../docs/platform-openapi.json'), 'utf8'),
)

beforeAll(async () => {
  cloud = await playCloud()
  platform = await createTestPlatform({ flags: cloud.flags })
  await platform.addUser(email('root'), password, ['admin'])
  await platform.addUser(email('changing'), password)
  const signIn = (name: string) => platform.signIn(email(name), password)
  const uids = new Map<string, string>()
  for (const [name, { tenant }] of Object.entries(users) as [string, Roles][])
    if (!name.startsWith('key'))
      uids.set(name, await platform.addUser(email(name), password, tenant && [tenant]))

  headersOf.set('expired', await signIn('admin'))
  platform.clock.turn(15 * minuteMs)
  adminHeaders = await signIn('root')
  const rolesIn = (pick: (roles: Roles) => Role | undefined) =>
    Object.entries(users).flatMap(([name, roles]) => {
      const role = pick(roles)
      return role === undefined || name.startsWith('key') ? [] : [{ userId: uids.get(name), roles: [role] }]
    })
  const members = rolesIn(({ project }) => project)
  projectUid = (await made('/v1/projects', { metadata: { name: 'north' }, spec: { users: members } })).uid
  await made('/v1/projects', {
    metadata: { name: 'south' },
    spec: { users: [{ userId: uids.get('elsewhere'), roles: ['admin'] }] },
  })
  for (const name of uids.keys()) headersOf.set(name, await signIn(name))
  for (const name of ['operator', 'admin']) {
    const spec = { userUid: uids.get(name), expiry: expiry() }
    const { apiKey } = await made('/v1/apiKeys', { metadata: { name }, spec })
    headersOf.set(`key of the ${name}`, { apiKey })
  }
  const off = await newKey()
  await asAdmin('PUT', `/v1/apiKeys/${off.uid}/state`, { isActive: false })
  headersOf.set('key that is off', { apiKey: off.apiKey })
  const revoked = await signIn('admin')
  await asAdmin('POST', '/v1/users/auth/tokens/revoke', { tokens: [revoked.authorization] })
  headersOf.set('revoked', revoked)
  headersOf.set('nobody', {})

  host = await newHost(projectUid)
  await host.logIn()
  headersOf.set('old login of a host', { authorization: host.token })
  // The token of the first login ends with the second one.
  await ask('PATCH', `/v1/edgehosts/${host.uid}/health`, { authorization: host.token }, { state: 'healthy' })
  await host.logIn()
  headersOf.set('host', { authorization: host.token })
  const other = await newHost(projectUid)
  await other.logIn()
  headersOf.set('other host', { authorization: other.token })
  const removed = await newHost('')
  await removed.logIn()
  await asAdmin('DELETE', `/v1/edgehosts/${removed.uid}`)
  headersOf.set('removed host', { authorization: removed.token })
  await uploadClusterPacks(platform, adminHeaders)
  clusterProfileUid = await importedProfile(platform, adminHeaders)
  hostCluster = await newCluster('the project', host.uid)
  await platform.app.ready()
})
afterAll(async () => {
  await platform.close()
  await cloud.close()
})

// The requests of this matrix leave everything as it is; clusters.test.ts has those that do not.
const changesNothing = ['PATCH /v1/spectroclusters/:uid/variables']
const messageOf = (uid: unknown): string => {
  const { sql } = platform.rooms.state.database
  const row = typeof uid === 'string' ? sql.prepare('SELECT message FROM audit WHERE uid = ?').get(uid) : {}
  return String(row?.message)
}

const isEntry = (operation: string) => Object.hasOwn(entries, operation)

it('every declared route has an entry, and every entry a route', () => {
  const declared = platform.rooms.api.table.routes.map(({ method, url }) => `${method} ${url}`)
  const operations = declared.filter((each) => !each.startsWith('HEAD '))
  expect(operations.filter((each) => !isEntry(each))).toEqual([])
  expect(Object.keys(entries).filter((each) => !operations.includes(each))).toEqual([])
  // HEAD has the rights of GET.
  const heads = declared.filter((each) => each.startsWith('HEAD '))
  expect(heads.filter((each) => !isEntry(each.replace('HEAD', 'GET')))).toEqual([])
})

it('every caller is a part of the matrix', () => {
  expect([...headersOf.keys()].sort()).toEqual([...callers].sort())
})

describe('an operation', () => {
  it.each(Object.entries(entries))(
    '%s is open to the right callers, and answers each as documented',
    async (operation, entry) => {
      const [method = '', path = ''] = operation.split(' ')
      const { routes } = platform.rooms.api.table
      const methods = routes.filter(
        ({ url, method: each }) => url === path && (each === method || each === 'HEAD'),
      )
      const spelled = path.replaceAll(/:([A-Za-z]+)/g, '{$1}')
      const document = documented.find((each) => each.method === method && each.path === spelled)
      if (!document && entry.isPage !== true) throw new Error(`${operation} is not documented`)
      const undocumented: string[] = []
      const messages: string[] = []
      let isCompared = false
      const declared = methods.find((each) => each.method === method)
      const wanted: Record<string, string> = {}
      const found: Record<string, string> = {}
      for (const scope of scopes) {
        // What was read or refused is asked for again.
        let kept: Sent | undefined
        for (const caller of callers)
          for (const { method: each } of method === 'GET' ? methods : [{ method }]) {
            const what = `${each} in ${scope} by ${caller}`
            const right = expected(entry, path, caller, scope)
            wanted[what] = each === 'HEAD' ? right.slice(0, 3) : right
            kept ??= (await entry.request?.(scope)) ?? {}
            const { parameter = '', payload, headers: own = {} } = kept
            const named: Headers = scope === 'the project' ? { projectuid: projectUid } : {}
            const url = path
              .replace(':machinePoolName', 'control-plane-pool')
              .replace(/:[A-Za-z]+/, parameter)
            const send = (more: Headers = {}) =>
              ask(each as Method, url, { ...own, ...headersOf.get(caller), ...named, ...more }, payload)
            // A change that was meant for another state is refused.
            if (declared?.hasEtag && method !== 'GET' && right.startsWith('2') && !isCompared) {
              isCompared = true
              expect((await send({ 'if-match': '"other"' })).statusCode, what).toBe(412)
            }
            const reply = await send()
            if (reply.statusCode < 300) messages.push(messageOf(reply.headers.audituid))
            if (reply.statusCode < 300 && (method !== 'GET' || entry.rule === 'open')) kept = undefined
            const isRefused = reply.statusCode >= 400 && reply.statusCode !== entry.status && each !== 'HEAD'
            const code = isRefused ? ` ${reply.json<{ code: string }>().code}` : ''
            found[what] = `${reply.statusCode}${code}`
            if (each === 'HEAD' || !document) continue
            const { statusCode: status, headers, body } = reply
            undocumented.push(
              ...problemsOf(document, { status, headers, body }).map((problem) => `${what}: ${problem}`),
            )
          }
      }
      expect(found).toEqual(wanted)
      expect(undocumented).toEqual([])
      // What changes a resource says what it has changed, old and new.
      const says = declared?.audit && typeof declared.audit.changes === 'function'
      const isSaid = messages.some((message) => message.includes(' -> '))
      expect(isSaid, messages[0]).toBe(says === true && !changesNothing.includes(operation))
    },
  )
})
