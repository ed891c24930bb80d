import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import type { createTestPlatform } from './test-platform.ts'

type TestPlatform = Awaited<ReturnType<typeof createTestPlatform>>

export interface HostReply {
  readonly status: number
  readonly text: string
  readonly json: {
    readonly code?: string
    readonly details?: { readonly nonce: string; readonly field?: string }
    readonly Authorization?: string
    readonly generation?: number
    readonly metadata?: { readonly uid: string; readonly name: string }
    readonly aclmeta?: { readonly projectUid: string }
  }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

export interface PlayedEdgeHost {
  readonly hostUid: string
  uid: string
  /** As it is stored on its disk. */
  generation: number
  token: string
  /** @param metadata more of its metadata, for example its labels */
  register(hostAuthToken: string, name?: string, metadata?: object): Promise<HostReply>
  /** The same with a query, for example `?dryRun=true`; the uid of the reply is not stored. */
  ask(query: string, hostAuthToken: string, name?: string, metadata?: object): Promise<HostReply>
  /** The first half of a login. */
  challenge(): Promise<HostReply>
  /** The second half; what it gets is not stored. */
  answer(nonce: string, gen?: number): Promise<HostReply>
  /** Both halves, without storing what it gets, as where the reply is lost. */
  loseLogin(): Promise<HostReply>
  logIn(): Promise<HostReply>
  /** As after the disk was copied. @param on another platform, for example a restored one */
  copy(on?: TestPlatform): PlayedEdgeHost
}

/** A host with a key of its own, as it talks to a platform; a copy of it has the same key and the generation of now. */
export function playEdgeHost(
  platform: TestPlatform,
  { hostUid = `edge-${randomUUID()}`, keys = generateKeyPairSync('ed25519'), generation = 0, uid = '' } = {},
) {
  const publicKey = keys.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64url')

  async function post(url: string, payload: object): Promise<HostReply> {
    const reply = await platform.app.inject({ method: 'POST', url, payload })
    return { status: reply.statusCode, text: reply.body, json: reply.json() }
  }

  const host: PlayedEdgeHost = {
    hostUid,
    uid,
    generation,
    token: '',
    ask: (query: string, hostAuthToken: string, name = hostUid, metadata: object = {}) =>
      post(`/v1/edgehosts/register${query}`, {
        metadata: { name, ...metadata },
        spec: {
          device: { archType: 'amd64', memory: { sizeInMB: 2_048 } },
          service: { name: 'edgehostd', version: '1.2.3' },
          host: {
            ...{ hostUid, hostAddress: '192.0.2.7', hostAuthToken },
            hostIdentity: { mode: 'signature', publicKey },
          },
        },
      }),
    async register(hostAuthToken: string, name?: string, metadata?: object) {
      const reply = await host.ask('', hostAuthToken, name, metadata)
      host.uid = reply.json.metadata?.uid ?? host.uid
      return reply
    },
    challenge: () => post('/v1/auth/services/edge/login', { edgeHostUid: host.uid }),
    answer(nonce: string, gen = host.generation) {
      const content = `${encode({ alg: 'EdDSA', typ: 'edge-login+jwt' })}.${encode({ sub: host.uid, nonce, gen })}`
      const signature = sign(null, Buffer.from(content), keys.privateKey).toString('base64url')
      const edgeAuthToken = `${content}.${signature}`
      return post('/v1/auth/services/edge/login', { edgeHostUid: host.uid, edgeAuthToken })
    },
    async loseLogin() {
      const { details } = (await host.challenge()).json
      return host.answer(details!.nonce)
    },
    async logIn() {
      const reply = await host.loseLogin()
      if (reply.status === 200) {
        host.generation = reply.json.generation!
        host.token = reply.json.Authorization!
      }
      return reply
    },
    copy: (on = platform) => playEdgeHost(on, { hostUid, keys, generation: host.generation, uid: host.uid }),
  }
  return host
}

/** The body of a registration of a host with a name and a key of its own. */
export function registrationBody(hostAuthToken: string) {
  const publicKey = generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' })
  const hostIdentity = { mode: 'signature', publicKey: publicKey.subarray(-32).toString('base64url') }
  const spec = {
    device: { archType: 'amd64' },
    service: { name: 'edgehostd', version: '1.2.3' },
    host: { hostUid: randomUUID(), hostAddress: '192.0.2.9', hostAuthToken, hostIdentity },
  }
  return { metadata: { name: `h-${randomUUID()}` }, spec }
}
