import { escapeInvisible } from '../base/printable.ts'
import {
  FingerprintDiffers,
  ForeignReply,
  NoReply,
  ProxyUnreachable,
  TunnelRefused,
} from '../outgoing/failures.ts'
import { proxyOf, type Way } from '../outgoing/connection.ts'
import { proxyLogin, proxyShown } from '../outgoing/proxy.ts'

/** Purpose of a secret of this host. */
type SecretKind = 'registrationToken' | 'sessionToken' | 'kubeconfig'

/** Secrets that this host has sent to its platform. No cause shows them, whichever call the platform or a proxy repeats them to. */
export interface OwnSecrets {
  /** Adds one. The last few of each kind are kept. */
  add(kind: SecretKind, secret: string): void
  all(): readonly string[]
}

// A kubeconfig has one or two, and a token of a session is good for 15 minutes.
const keptOfKind = 8

/** Secrets of this host, in memory only. */
export function createOwnSecrets(): OwnSecrets {
  const kept = new Map<SecretKind, readonly string[]>()
  return {
    add(kind, secret) {
      const others = (kept.get(kind) ?? []).filter((other) => other !== secret)
      kept.set(kind, [secret, ...others].slice(0, keptOfKind))
    },
    all: () => [...kept.values()].flat(),
  }
}

/** The secret values of a kubeconfig: keys of clients, tokens and passwords. */
export const secretsOfKubeconfig = (kubeconfig: string): readonly string[] =>
  Array.from(kubeconfig.matchAll(/(?:client-key-data|token|password)["']?: *["']?([^\s"',}]+)/g), (found) =>
    String(found[1]),
  )

// A shorter part of a secret also occurs by chance.
const shortestPart = 16

/**
 * Masks secrets in a short text, and parts of them: a reply may have only the beginning of what was sent.
 * @param secrets an empty one is in no text
 */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  // Which characters are secret. The text itself is changed only once: secrets may have parts of the word that replaces them.
  const isSecret = new Uint8Array(text.length)
  for (const secret of secrets) {
    const length = Math.min(secret.length, shortestPart)
    if (length === 0) continue
    for (let from = 0; from + length <= text.length; from++)
      if (secret.includes(text.slice(from, from + length))) isSecret.fill(1, from, from + length)
  }
  return Array.from(isSecret, (is, at) =>
    is === 0 ? text.charAt(at) : isSecret[at - 1] === 1 ? '' : '(secret)',
  ).join('')
}

/** Why the platform is not reached, or refuses this host. */
type CauseKind =
  | 'name'
  | 'route'
  | 'timeout'
  | 'clock'
  | 'certificateExpired'
  | 'certificateName'
  | 'certificateIssuer'
  | 'fingerprint'
  | 'tls'
  | 'proxy'
  | 'proxyLogin'
  | 'proxyOpensTls'
  | 'settings'
  | 'storage'
  | 'tokenRefused'
  | 'alreadyRegistered'
  | 'unknownHost'
  | 'removed'
  | 'existsTwice'
  | 'busy'
  | 'platform'
  | 'foreign'
  | 'defect'

/** A cause, with one line for the operator that also says what to do. */
export interface Cause {
  readonly kind: CauseKind
  readonly message: string
}

// Causes that need an operator; all others may pass by themselves.
const lasting: ReadonlySet<CauseKind> = new Set([
  ...['settings', 'tokenRefused', 'alreadyRegistered', 'unknownHost', 'removed', 'existsTwice'],
] as const)

/** Whether a cause may pass without an operator. */
export const isPassing = ({ kind }: Cause): boolean => !lasting.has(kind)

const words: Readonly<Record<CauseKind, string>> = {
  name: 'its name cannot be resolved',
  route: 'it cannot be reached',
  timeout: 'it does not answer',
  clock: 'the clock of this host is wrong',
  certificateExpired: 'its certificate has expired',
  certificateName: 'its certificate has another name',
  certificateIssuer: 'the issuer of its certificate is unknown',
  fingerprint: 'its certificate is not the pinned one',
  tls: 'it does not speak TLS',
  proxy: 'the proxy does not let this host through',
  proxyLogin: 'the proxy asks for a login',
  proxyOpensTls: 'the proxy opens TLS',
  settings: 'the settings of this host are not complete',
  storage: 'this host cannot store its login',
  tokenRefused: 'the registration token was refused',
  alreadyRegistered: 'this host is registered with another key',
  unknownHost: 'it does not know this host',
  removed: 'this host was removed there',
  existsTwice: 'this host exists twice',
  busy: 'it is busy',
  platform: 'it answers with an error',
  foreign: 'something else answers there',
  defect: 'edgehostd has a defect',
}

/** A cause in a few words, for the console: without text that came over the network. */
export const causeInWords = ({ kind }: Cause): string => words[kind]

const noRoute = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN', 'EHOSTDOWN']
const noName = ['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME']
// X509_verify_cert(3): nothing that this host trusts has signed the certificate.
const noIssuer = [
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
]

/**
 * Says why a call failed before there was a reply.
 * @param now wall clock of this host, milliseconds since 1970
 */
export function causeOfError(error: unknown, way: Way, now: number): Cause {
  const { host, hostname, port } = new URL(way.url)
  const used = proxyOf(way)
  const proxy = used === undefined ? undefined : proxyShown(used)
  const setting =
    used !== undefined && way.proxy === undefined ? 'edgehostctl configuration get' : 'platform.proxy'
  const code = codeOf(error)
  const hostClock = `the clock of this host says ${new Date(now).toISOString()}`
  if (error instanceof TunnelRefused && error.status === 407)
    return {
      kind: 'proxyLogin',
      message:
        used !== undefined && proxyLogin(used) !== undefined
          ? `the proxy ${proxy} refuses the login that it is given; check ${setting}`
          : `the proxy ${proxy} asks for a login, which edgehostd does not have; let ${host} through without one, or give one: edgehostctl configuration set`,
    }
  if (error instanceof TunnelRefused)
    return {
      kind: 'proxy',
      message: `the proxy ${proxy} refused a connection to ${host} (status ${error.status}); allow CONNECT to port ${port || '443'} there`,
    }
  if (error instanceof ProxyUnreachable)
    return {
      kind: 'proxy',
      message: `the proxy ${proxy} cannot be reached (${error.message}); check ${setting}`,
    }
  if (error instanceof FingerprintDiffers)
    return proxy === undefined
      ? {
          kind: 'fingerprint',
          message: `the certificate of ${host} has the fingerprint ${error.shown}, and platform.fingerprint names another one`,
        }
      : opensTls(host, proxy, `its fingerprint is ${error.shown}`)
  if (error instanceof ForeignReply)
    return {
      kind: 'foreign',
      message: `${host} answers, but not as a platform does: ${error.message}; check platform.url`,
    }
  if (error instanceof NoReply || code === 'ETIMEDOUT')
    return { kind: 'timeout', message: `${host} did not answer in time; a firewall may drop the packets` }
  if (noName.includes(code))
    return { kind: 'name', message: `the name ${hostname} cannot be resolved (${code}); check DNS` }
  if (noRoute.includes(code))
    return {
      kind: 'route',
      message: `${host} cannot be reached (${code}); check the network and the port, or set platform.proxy`,
    }
  if (code === 'CERT_NOT_YET_VALID')
    return {
      kind: 'clock',
      message: `the certificate of ${host} is not valid yet, and ${hostClock}; check NTP, or set platform.fingerprint, which needs no clock`,
    }
  if (code === 'CERT_HAS_EXPIRED')
    return {
      kind: 'certificateExpired',
      message: `the certificate of ${host} has expired, and ${hostClock}; renew it there, or set this clock`,
    }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      kind: 'certificateName',
      message: `the certificate of ${host} does not name ${hostname}; use a name that it has in platform.url`,
    }
  if (noIssuer.includes(code))
    return proxy === undefined
      ? {
          kind: 'certificateIssuer',
          message: `this host does not know who issued the certificate of ${host}; set platform.caFile or platform.fingerprint`,
        }
      : opensTls(host, proxy, 'this host does not know who issued it')
  // The parser of HTTP does not understand it, or it is larger than the parser takes.
  if (code.startsWith('HPE_'))
    return {
      kind: 'foreign',
      message: `${host} answers, but not in HTTP as a platform does (${code}); check platform.url`,
    }
  if (/^ERR_(SSL|TLS)_|^EPROTO$/.test(code))
    return { kind: 'tls', message: `${host} does not speak TLS as it should (${code})` }
  return {
    kind: 'route',
    message: `the connection to ${host} failed (${code || messageOf(error)}); check the network`,
  }
}

const opensTls = (host: string, proxy: string, reason: string): Cause => ({
  kind: 'proxyOpensTls',
  message: `the certificate that comes through the proxy ${proxy} is not one that this host trusts for ${host}: ${reason}; the proxy may open TLS: exempt ${host} there, or check platform.caFile and platform.fingerprint`,
})

const byCode: Readonly<Record<string, Cause>> = {
  RegistrationTokenRefused: {
    kind: 'tokenRefused',
    message:
      'the platform refused the registration token: it is unknown, expired, switched off or used up; make a new one there',
  },
  HostAlreadyRegistered: {
    kind: 'alreadyRegistered',
    message:
      'the platform knows this host with another key; an administrator of the platform has to delete the old record',
  },
  LoginRefused: {
    kind: 'unknownHost',
    message:
      'the platform does not know this host with this key, as after it was restored from an older backup; connect this host again with a new token',
  },
  HostRemoved: {
    kind: 'removed',
    message:
      'this host was removed on the platform; connect it again with a new token, or disconnect it: edgehostctl platform disconnect',
  },
  HostExistsTwice: {
    kind: 'existsTwice',
    message:
      'this host exists twice: another machine uses its key, as after a disk was cloned; an administrator of the platform has to choose',
  },
}

/**
 * Says why the platform refused a call.
 * @param body the reply, `{ code, message }`
 * @param secrets masked in messages: a platform or a proxy that opens TLS may repeat them
 * @returns undefined for a success
 */
export function causeOfReply(
  status: number,
  body: unknown,
  secrets: readonly string[] = [],
): Cause | undefined {
  if (status >= 200 && status < 300) return undefined
  const { message } = { ...(body as { readonly message?: unknown } | null) }
  const code = codeOfReply(body)
  const known = code !== undefined && Object.hasOwn(byCode, code) ? byCode[code] : undefined
  if (known !== undefined) return known
  const said = typeof message === 'string' ? shown(message, secrets) : 'without a message'
  if (status === 429 || status === 503)
    return { kind: 'busy', message: `the platform asks for a later attempt (${status}): ${said}` }
  return { kind: 'platform', message: `the platform answered ${status}: ${said}` }
}

/** Message of a reply, on one line: terminals, also in a journal, obey some characters. */
const shown = (message: string, secrets: readonly string[]): string =>
  // A mask is short, and the rest begins as the message does.
  escapeInvisible(maskSecrets(message.slice(0, 1_000), secrets).slice(0, 200))

/** The code of a refusal; undefined for any other reply. */
export function codeOfReply(body: unknown): string | undefined {
  const { code } = { ...(body as { readonly code?: unknown } | null | undefined) }
  return typeof code === 'string' ? code : undefined
}

const codeOf = (error: unknown): string => {
  const code = (error as { readonly code?: unknown } | null)?.code
  return typeof code === 'string' ? code : ''
}
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
