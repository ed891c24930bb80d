import { afterAll, beforeAll, expect } from 'vitest'
import type { SpectroCluster } from '../../src/platform/clusters/schemas.ts'
import {
  clusterEntity,
  clusterProfile,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from './platform-clusters.ts'
import type { PlayedEdgeHost } from './played-edge-host.ts'
import { createTestPlatform } from './test-platform.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Record<string, string>
let viewer: Record<string, string>
let profileUid: string

/** A platform with users, the packs and the profile of clusters, for the tests of a file. */
export function clusterWorld() {
  beforeAll(async () => {
    platform = await createTestPlatform()
    await platform.addUser('root@plant.example', password, ['admin'])
    await platform.addUser('eye@plant.example', password, ['viewer'])
    await signIn()
    await uploadClusterPacks(platform, admin)
    profileUid = await importedProfile(platform, admin, clusterProfile('plant'))
  })
  afterAll(() => platform.close())
  return {
    platform: () => platform,
    profileUid: () => profileUid,
    admin: () => admin,
    viewer: () => viewer,
    signIn,
    joined: (how: Parameters<typeof joinedHost>[2] = {}) => joinedHost(platform, admin, how),
    imported: (profile: object) => importedProfile(platform, admin, profile),
  }
}

async function signIn() {
  admin = await platform.signIn('root@plant.example', password)
  viewer = await platform.signIn('eye@plant.example', password)
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export async function ask(method: Method, url: string, payload?: object, headers: object = admin) {
  const reply = await platform.app.inject({
    ...{ method, url, headers: { ...headers } },
    ...(payload ? { payload } : {}),
  })
  const isJson = reply.headers['content-type']?.includes('json') === true
  return {
    ...{ status: reply.statusCode, body: reply.body, headers: reply.headers, bytes: reply.rawPayload },
    json: isJson ? reply.json<Record<string, never>>() : undefined,
  }
}
export const by = (host: PlayedEdgeHost) => ({ authorization: host.token })

export async function create(
  host: PlayedEdgeHost,
  how: Parameters<typeof clusterEntity>[2] = {},
  profile = profileUid,
) {
  const { status, body } = await ask(
    'POST',
    '/v1/spectroclusters/edge-native',
    clusterEntity(host.uid, profile, how),
  )
  if (status !== 201) throw new Error(body)
  return (JSON.parse(body) as { uid: string }).uid
}
export const shown = async (uid: string) =>
  JSON.parse((await ask('GET', `/v1/spectroclusters/${uid}`)).body) as SpectroCluster
export const download = (host: PlayedEdgeHost, headers: object = {}) =>
  ask('GET', `/v1/edgehosts/${host.uid}/spc/download`, undefined, { ...by(host), ...headers })
export const beat = async (host: PlayedEdgeHost) =>
  (await ask('PATCH', `/v1/edgehosts/${host.uid}/health`, { state: 'healthy' }, by(host))).headers[
    'edgehost-wanted'
  ]
export const report = (host: PlayedEdgeHost, uid: string, body: object) =>
  ask('PUT', `/v1/spectroclusters/${uid}/heartbeat`, { agentVersion: '1.2.3', ...body }, by(host))

/** The two members of a tar. */
export function unpack(bytes: Buffer) {
  const sizeAt = (at: number) => Number.parseInt(bytes.toString('latin1', at + 124, at + 135), 8)
  const nameAt = (at: number) => bytes.toString('latin1', at, at + 100).replace(/\0.*$/s, '')
  const members: [string, Buffer][] = []
  for (let at = 0; bytes[at] !== 0; at += 512 + Math.ceil(sizeAt(at) / 512) * 512)
    members.push([nameAt(at), bytes.subarray(at + 512, at + 512 + sizeAt(at))])
  return members
}
interface Description {
  readonly number: number
  readonly isDeleted: boolean
  readonly tenantUid: string
  readonly definitionSha256: string
  readonly cluster: { readonly uid: string; readonly name: string }
  readonly configuration: {
    readonly spec: {
      readonly archiveUploadPath?: string
      readonly profileVariables: readonly object[]
      readonly cloudConfig: {
        readonly spec: { readonly clusterConfig: object; readonly machinePoolConfig: object[] }
      }
    }
  }
}
export async function wanted(host: PlayedEdgeHost) {
  const { bytes, headers, status } = await download(host)
  if (status !== 200) throw new Error(bytes.toString())
  const [[first, head], definition] = unpack(bytes) as [[string, Buffer], [string, Buffer] | undefined]
  expect(first).toBe('cluster.json')
  return { bytes, headers, definition, head: JSON.parse(head.toString()) as Description }
}

export const problemCodes = ({ body }: { readonly body: string }) => {
  const { details, problems } = JSON.parse(body) as {
    details?: { problems: { code: string; severity: string }[] }
    problems?: { code: string; severity: string }[]
  }
  return (problems ?? details?.problems ?? [])
    .filter(({ severity }) => severity === 'error')
    .map(({ code }) => code)
}
