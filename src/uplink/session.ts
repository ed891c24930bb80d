import type { EdgeHostDevice, EdgeLoginReply } from '../platform/schemas/edge-hosts.ts'
import { codeOfReply, type Cause } from './cause.ts'
import type { Answer, PlatformClient } from './client.ts'
import type { ReportedFacts } from './facts.ts'
import type { HostKey } from './host-key.ts'
import type { LinkStore, Registration } from './link-store.ts'

/** A login that the platform has accepted. */
export interface Session {
  readonly token: string
  /** `hostChecksum` of what the platform knows of this host. */
  readonly knownChecksum: string | undefined
}

export interface HandshakeOptions {
  readonly client: Pick<PlatformClient, 'call'>
  readonly key: Pick<HostKey, 'publicKey' | 'prove'>
  readonly store: LinkStore
  readonly hostId: string
  /** Called for each new record on the platform. */
  readonly onRegistered: (registration: Pick<Registration, 'edgeHostUid'>) => void
}

/** Registration and login of this host, as the platform describes them (docs/adr/0029). */
export interface Handshake {
  /**
   * Registers this host; the record is on the disk when this returns without a cause. It may be done again.
   * @param token may be empty: the platform knows a host again by its key
   */
  register(token: string, name: string, facts: ReportedFacts): Promise<Answer>
  /** Logs in; the generation is on the disk when this returns a session. */
  logIn(edgeHostUid: string): Promise<Answer & { readonly session?: Session }>
}

const loginPath = '/v1/auth/services/edge/login'

export function createHandshake({ client, key, store, hostId, onRegistered }: HandshakeOptions): Handshake {
  const ask = (name: string, hostAuthToken: string, { device, service, ...host }: ReportedFacts) =>
    client.call({
      ...{ method: 'POST', path: '/v1/edgehosts/register' },
      body: {
        metadata: { name },
        spec: {
          ...{ device, service },
          host: {
            ...{ ...host, hostUid: hostId, hostAuthToken },
            hostIdentity: { mode: 'signature', publicKey: key.publicKey },
          },
        },
      },
    })

  return {
    async register(token, name, facts) {
      const asked = await ask(name, token, facts)
      // Two hosts of one scope may not have one name; the id is the name that no other host has.
      const isTaken = codeOfReply(asked.body) === 'HostNameExists' && name !== hostId
      const answer = isTaken ? await ask(hostId, token, facts) : asked
      if (answer.cause) return answer
      const { metadata, aclmeta } = answer.body as EdgeHostDevice
      const isNew = store.current()?.edgeHostUid !== metadata.uid
      await store.putRegistration({ edgeHostUid: metadata.uid, projectUid: aclmeta.projectUid, hostId })
      if (isNew) onRegistered({ edgeHostUid: metadata.uid })
      return answer
    },
    async logIn(edgeHostUid) {
      const challenge = await client.call({ method: 'POST', path: loginPath, body: { edgeHostUid } })
      const nonce = nonceOf(challenge)
      if (nonce === undefined) return challenge.cause ? challenge : { ...challenge, cause: noChallenge }
      const edgeAuthToken = key.prove({ sub: edgeHostUid, nonce, gen: store.current()?.generation ?? 0 })
      const answer = await client.call({
        ...{ method: 'POST', path: loginPath },
        body: { edgeHostUid, edgeAuthToken },
      })
      if (answer.cause) return answer
      const { Authorization: token, generation, hostChecksum } = answer.body as EdgeLoginReply
      // Before the token is used: its use tells the platform that this host has the generation.
      await store.putGeneration(generation)
      return { ...answer, session: { token, knownChecksum: hostChecksum } }
    },
  }
}

const noChallenge: Cause = {
  kind: 'foreign',
  message: 'the platform did not answer the login as a platform does; check platform.url',
}

function nonceOf({ status, body }: Answer): string | undefined {
  const { details } = { ...(body as { readonly details?: { readonly nonce?: unknown } } | undefined) }
  const isChallenge = status === 401 && codeOfReply(body) === 'LoginChallenge'
  return isChallenge && typeof details?.nonce === 'string' ? details.nonce : undefined
}
