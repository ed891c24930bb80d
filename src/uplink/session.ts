import type { Registration, LinkStore } from './link-store.ts'
import { printable } from '../base/printable.ts'
import { codeOfReply, type Cause } from './cause.ts'
import type { Answer, PlatformClient } from './client.ts'
import { toRegistration, type ReportedFacts } from './facts.ts'
import type { HostKey } from './host-key.ts'

/** Record of this host in the reply to a registration. */
export interface PlatformRecord extends Pick<Registration, 'edgeHostUid' | 'projectUid' | 'tenantUid'> {
  /** The name of this host there. */
  readonly name: string
  /** Name of its project; empty where the platform does not say it. */
  readonly projectName: string
}

// Fields of a reply are stored, and become parts of later calls: nothing is taken that no platform sends.
const uid = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Characters of a name in a reply of the platform. */
const longestName = 253

type Unknown<Keys extends string> = Readonly<Partial<Record<Keys, unknown>>>

const isUid = (value: unknown): value is string => typeof value === 'string' && uid.test(value)

const nameIn = (value: unknown) => (typeof value === 'string' ? value.slice(0, longestName) : '')

/**
 * Reads the reply to a registration, or to a dry run, where the uid may be empty.
 * @returns undefined where it is no record
 */
export function readRecord(body: unknown): PlatformRecord | undefined {
  const { metadata, aclmeta, projectName } = {
    ...(body as Unknown<'metadata' | 'aclmeta' | 'projectName'> | null | undefined),
  }
  const { uid: edgeHostUid, name } = { ...(metadata as Unknown<'uid' | 'name'> | null | undefined) }
  const { projectUid, tenantUid } = { ...(aclmeta as Unknown<'projectUid' | 'tenantUid'> | null | undefined) }
  if (!(edgeHostUid === '' || isUid(edgeHostUid)) || !(projectUid === '' || isUid(projectUid)))
    return undefined
  return {
    edgeHostUid,
    projectUid,
    name: nameIn(name),
    projectName: nameIn(projectName),
    ...(isUid(tenantUid) ? { tenantUid } : {}),
  }
}

/** A login that the platform has accepted. */
export interface Session {
  readonly token: string
  /** `hostChecksum` of the facts that the platform knows. */
  readonly knownChecksum: string | undefined
  /** Name of the project of this host, for people; undefined where it is of the tenant, or the platform does not say it. */
  readonly projectName: string | undefined
}

interface HandshakeOptions {
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
  const ask = (name: string, token: string, facts: ReportedFacts) =>
    client.call({
      method: 'POST',
      path: '/v1/edgehosts/register',
      secrets: [token],
      body: toRegistration({ name, hostId, token, publicKey: key.publicKey }, facts),
    })

  return {
    async register(token, name, facts) {
      const asked = await ask(name, token, facts)
      // Two hosts of one scope may not have one name; the id is the name that no other host has.
      const isTaken = codeOfReply(asked.body) === 'HostNameExists' && name !== hostId
      const answer = isTaken ? await ask(hostId, token, facts) : asked
      if (answer.cause) return answer
      const record = readRecord(answer.body)
      if (!record || record.edgeHostUid === '') return { ...answer, cause: notAsPlatform('registration') }
      const isNew = store.current()?.edgeHostUid !== record.edgeHostUid
      await store.putRegistration({ ...record, hostId })
      if (isNew) onRegistered(record)
      return answer
    },
    async logIn(edgeHostUid) {
      const challenge = await client.call({ method: 'POST', path: loginPath, body: { edgeHostUid } })
      const nonce = nonceOf(challenge)
      if (nonce === undefined)
        return challenge.cause ? challenge : { ...challenge, cause: notAsPlatform('login') }
      const gen = store.current()?.generation ?? 0
      const edgeAuthToken = key.prove({ sub: edgeHostUid, nonce, gen })
      const answer = await client.call({
        method: 'POST',
        path: loginPath,
        secrets: [edgeAuthToken],
        body: { edgeHostUid, edgeAuthToken },
      })
      if (answer.cause) return answer
      const accepted = loginOf(answer)
      if (!accepted || accepted.generation <= gen || accepted.generation > gen + farthestLeap)
        return { ...answer, cause: notAsPlatform('login') }
      const { generation, ...session } = accepted
      // Before the token is used: its use tells the platform that this host has the generation.
      await store.putGeneration(generation)
      return { ...answer, session }
    },
  }
}

const notAsPlatform = (what: string): Cause => ({
  kind: 'foreign',
  message: `the platform did not answer the ${what} as a platform does; check platform.url`,
})

// Nothing is taken that no platform sends, as in `readRecord`.
const longestNonce = 1_024
const longestToken = 4_096
const longestChecksum = 128
// The platform refuses a larger one.
const largestGeneration = 2 ** 52
// More logins than there are. One reply must not bring a host to a number after which no platform can count on.
const farthestLeap = 2 ** 32

const isText = (value: unknown, longest: number): value is string =>
  typeof value === 'string' && value.length <= longest

function loginOf({ body }: Answer): (Session & { readonly generation: number }) | undefined {
  const {
    Authorization: token,
    generation,
    hostChecksum,
    projectName,
  } = { ...(body as Unknown<'Authorization' | 'generation' | 'hostChecksum' | 'projectName'> | undefined) }
  if (!isText(token, longestToken) || !/^[\x21-\x7e]+$/.test(token)) return undefined
  if (typeof generation !== 'number' || !Number.isInteger(generation) || generation > largestGeneration)
    return undefined
  return {
    token,
    generation,
    knownChecksum: isText(hostChecksum, longestChecksum) ? hostChecksum : undefined,
    projectName: isText(projectName, longestName) ? printable(projectName) : undefined,
  }
}

function nonceOf({ status, body }: Answer): string | undefined {
  const { details } = { ...(body as Unknown<'details'> | undefined) }
  const { nonce } = { ...(details as Unknown<'nonce'> | null | undefined) }
  const isChallenge = status === 401 && codeOfReply(body) === 'LoginChallenge'
  return isChallenge && isText(nonce, longestNonce) ? nonce : undefined
}
