import { withoutEndSlashes } from '../../../base/end-slashes.ts'
import type { CloudsSettings } from '../../config.ts'
import { unavailable, objectsIn, textOf, unusable, type CloudHttp } from './http.ts'
import { createHash } from 'node:crypto'
import { isRecord, type JsonObject } from '../../../base/json.ts'
import { createBoundedMap } from '../../../base/bounded-map.ts'
import { AppError } from '../../../errors/app-error.ts'
import type { Clock } from '../../../system/clock.ts'
import { platformErrors } from '../../codes.ts'

const longestUrl = 2_048

/**
 * The URL of a service in the catalogue of a token, without a slash at its end. Pure.
 * @param catalogue as Keystone gives it, unchecked
 * @returns undefined where the service has no such endpoint
 * @throws AppError CloudUnavailable for an endpoint that is not HTTPS or is too long, and where only a region would tell which endpoint is meant
 */
export function chooseEndpoint(
  catalogue: unknown,
  type: 'compute' | 'network',
  { region, interface: wanted }: Pick<CloudsSettings['vendor'], 'region' | 'interface'>,
): string | undefined {
  const endpoints = objectsIn(catalogue)
    .filter((service) => service.type === type)
    .flatMap((service) => objectsIn(service.endpoints))
    .filter((endpoint) => endpoint.interface === wanted)
    .map(({ url, region_id: id, region: name }) => ({ url: textOf(url), region: textOf(id ?? name) }))
    .filter((endpoint) => region === undefined || endpoint.region === region)
  const [first] = endpoints
  if (!first) return undefined
  // Without their names, which are text of the cloud.
  if (endpoints.some((endpoint) => endpoint.region !== first.region))
    throw unavailable('the cloud has several regions (openstack region list): set clouds.vendor.region')
  const { url } = first
  // The token of the account is sent there.
  if (url.length > longestUrl || URL.parse(url)?.protocol !== 'https:')
    throw unavailable(`the ${wanted} endpoint of ${type} in the catalogue of the cloud is no https:// URL`)
  return withoutEndSlashes(url)
}

/** Id and secret of an application credential. */
export interface CloudCredentials {
  readonly secretId: string
  readonly secretKey: string
}

/** Session for requests to the services of a cloud. */
export interface CloudSession {
  readonly token: string
  /** The project of the application credential. */
  readonly projectId: string
  /** URL of Nova. */
  readonly compute: string
  /** URL of Neutron; undefined where the cloud has none. */
  readonly network: string | undefined
}

interface KeystoneOptions {
  readonly settings: CloudsSettings['vendor'] & { readonly authUrl: string }
  readonly http: Pick<CloudHttp, 'ask'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/** Keystone, version 3 of its interface. */
interface Keystone {
  /** @throws AppError CloudCredentialsRefused, CloudUnavailable */
  check(credentials: CloudCredentials, signal: AbortSignal): Promise<void>
  /**
   * The session of these credentials, a new one where there is none that lasts; one for all that ask meanwhile.
   * @throws AppError CloudCredentialsRefused, CloudUnavailable also without an answer in ten seconds
   */
  session(credentials: CloudCredentials): Promise<CloudSession>
  /** Forgets the session whose token a service has refused. */
  forget(credentials: CloudCredentials): void
}

// A catalogue of many regions has some hundred kilobytes.
const longestReply = 4_194_304
// Fernet tokens have some 200 characters, and ids of projects at most 64; both are kept.
const longestToken = 8_192
const longestId = 255
const logInMs = 10_000
// A read that begins with a token has to end with it.
const marginMs = 120_000
const mostSessions = 1_000

interface Kept extends CloudSession {
  /** On the monotonic clock. */
  readonly usableUntil: number
}

export function createKeystone({ settings, http, clock }: KeystoneOptions): Keystone {
  const { authUrl } = settings
  const base = withoutEndSlashes(authUrl)
  const url = new URL(`${base}${base.endsWith('/v3') ? '' : '/v3'}/auth/tokens`)
  const sessions = createBoundedMap<Kept>({
    maximum: mostSessions,
    worth: ({ usableUntil }, now) => Math.max(0, usableUntil - now),
  })
  const beginning = new Map<string, Promise<CloudSession>>()

  async function logIn({ secretId, secretKey }: CloudCredentials, signal: AbortSignal) {
    const reply = await http.ask({
      service: 'Keystone',
      method: 'POST',
      url,
      longest: longestReply,
      signal,
      body: {
        auth: {
          identity: {
            methods: ['application_credential'],
            application_credential: { id: secretId, secret: secretKey },
          },
        },
      },
    })
    const { status, headers, body } = reply
    // The same words for a wrong secret and an unknown id, so that a caller who guesses learns nothing.
    if (status === 401 || status === 404)
      throw new AppError(platformErrors.CloudCredentialsRefused, 'the cloud refuses these credentials')
    const token = headers['x-subject-token']
    if (status !== 201 || typeof token !== 'string' || token.length > longestToken || !isRecord(body?.token))
      throw unusable('Keystone', reply)
    return { token, granted: body.token }
  }

  async function begin(credentials: CloudCredentials, key: string): Promise<CloudSession> {
    const started = clock.monotonic()
    const { token, granted } = await logIn(credentials, AbortSignal.timeout(logInMs))
    const compute = chooseEndpoint(granted.catalog, 'compute', settings)
    if (compute === undefined)
      throw unavailable(`the catalogue of the cloud has no ${settings.interface} endpoint of compute`)
    const projectId = isRecord(granted.project) ? textOf(granted.project.id) : ''
    if (projectId.length > longestId) throw unavailable('Keystone answers with an id that is too long')
    const session: Kept = {
      token,
      compute,
      network: chooseEndpoint(granted.catalog, 'network', settings),
      projectId,
      usableUntil: started + lifetimeOf(granted) - marginMs,
    }
    sessions.set(key, session, started)
    return session
  }

  return {
    async check(credentials, signal) {
      await logIn(credentials, signal)
    },
    async session(credentials) {
      const key = keyOf(credentials)
      const kept = sessions.get(key)
      if (kept && kept.usableUntil > clock.monotonic()) return kept
      const started = beginning.get(key) ?? begin(credentials, key).finally(() => beginning.delete(key))
      beginning.set(key, started)
      return started
    },
    forget: (credentials) => sessions.delete(keyOf(credentials)),
  }
}

// With the secret: a caller who has only the id gets no session of another one. Its sum, so that it is not in memory for longer.
const keyOf = ({ secretId, secretKey }: CloudCredentials) =>
  createHash('sha256')
    .update(JSON.stringify([secretId, secretKey]))
    .digest('base64')

/** Lifetime of a token, in milliseconds, by the clock of the cloud alone; 0 where it does not say. */
function lifetimeOf({ issued_at: from, expires_at: until }: JsonObject): number {
  const lifetime = Date.parse(String(until)) - Date.parse(String(from))
  return Number.isFinite(lifetime) ? lifetime : 0
}
