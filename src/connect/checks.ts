import { program } from '../base/program.ts'
import { Failure } from '../ctl/exit-codes.ts'
import { oneLine, span } from '../ctl/layout.ts'
import type { EdgeHostRegistration } from '../platform/hosts/schemas.ts'
import { proxyOf, type Trust, type Way } from '../outgoing/connection.ts'
import { parseProxy } from '../outgoing/proxy.ts'
import { causeOfError, type Cause } from '../uplink/cause.ts'
import { createPlatformClient, type Answer, type PlatformClient } from '../uplink/client.ts'
import { createProbe } from '../uplink/probe.ts'
import { readRecord, type PlatformRecord } from '../uplink/session.ts'

/** The names of the checks, in their order. */
export type CheckName = 'name' | 'route' | 'TLS' | 'clock' | 'token'

export interface ChecksOptions extends Way, Trust {
  /** Registration of the host; the name is changed to its id where another host has it. */
  readonly registration: EdgeHostRegistration
  /** Reports each check that succeeds. */
  readonly tell: (check: CheckName, text: string, mood?: 'warning') => void
  readonly now: () => number
  /** For each step. */
  readonly timeoutMs?: number
}

const defaultTimeoutMs = 20_000
const tolerableMs = 60_000

/**
 * Checks step by step whether a host can be connected. Nothing is changed, neither here nor there, and nothing is sent before the
 * certificate is accepted.
 * @returns the record that the platform has of this host, or would make
 * @throws Failure with what to do
 */
export async function checkPlatform(options: ChecksOptions): Promise<PlatformRecord> {
  const { tell, now, timeoutMs = defaultTimeoutMs } = options
  const { host, hostname } = new URL(options.url)
  const probe = createProbe(options, timeoutMs)
  const explained = <T>(step: Promise<T>) =>
    step.catch((error: unknown) => {
      throw refusal(causeOfError(error, options, now()))
    })

  const { name, addresses } = await explained(probe.resolve())
  const resolved = addresses.length === 0 ? `${name} is an address` : `${name} is ${addresses.join(', ')}`
  const proxy = proxyOf(options)
  tell('name', proxy === undefined ? resolved : `${resolved}; the proxy resolves ${hostname}`)

  const connection = await explained(probe.open())
  tell(
    'route',
    `${host} accepts connections${proxy === undefined ? '' : ` through ${options.proxy ?? parseProxy(proxy).shown}`}`,
  )

  const fingerprint = await explained(probe.showCertificate(connection))
  const client = createPlatformClient({ ...options, timeoutMs })
  try {
    const greeting = await client.call({ method: 'GET', path: '/v1/health/ping' })
    if (greeting.status === undefined && greeting.cause)
      throw distrust(greeting.cause, options, host, fingerprint)
    tell('TLS', `the certificate is accepted; its fingerprint is ${fingerprint}`)
    requireGreeting(greeting, host)
    tellClock(greeting, options)
    return await tryRegistration(client, options, host)
  } finally {
    client.close()
  }
}

function requireGreeting({ status, body, cause }: Answer, host: string): void {
  const isPlatform = (body as { readonly msg?: unknown } | undefined)?.msg === 'pong'
  if (cause?.kind === 'busy') throw refusal(cause)
  if (cause || !isPlatform) throw foreign(status, host)
}

const foreign = (status: number | undefined, host: string) =>
  new Failure(
    'failed',
    `${host} answers (${status ?? 0}), but not as a platform does; check the URL. Nothing was changed`,
  )

function tellClock({ date = '' }: Answer, { tell, now }: ChecksOptions): void {
  const aheadMs = now() - Date.parse(date)
  if (Number.isNaN(aheadMs)) tell('clock', 'the platform does not say what time it is')
  // The header has whole seconds.
  else if (Math.abs(aheadMs) <= tolerableMs) tell('clock', 'agrees with that of the platform')
  else
    tell(
      'clock',
      `this clock is ${span(Math.abs(aheadMs) / 1_000)} ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the platform; set up NTP. Logins do not depend on it`,
      'warning',
    )
}

async function tryRegistration(
  client: PlatformClient,
  { registration, tell }: ChecksOptions,
  host: string,
): Promise<PlatformRecord> {
  const { metadata, spec } = registration
  const ask = (name: string) =>
    client.call({
      method: 'POST',
      path: '/v1/edgehosts/register?dryRun=true',
      secrets: [spec.host.hostAuthToken],
      body: { metadata: { ...metadata, name }, spec },
    })
  const asked = await ask(metadata.name)
  const { code } = { ...(asked.body as { readonly code?: unknown } | undefined) }
  // The host does the same when it registers.
  const isTaken = code === 'HostNameExists' && metadata.name !== spec.host.hostUid
  const { cause, status, body } = isTaken ? await ask(spec.host.hostUid) : asked
  if (cause?.kind === 'tokenRefused' && spec.host.hostAuthToken === '')
    throw new Failure(
      'usage',
      `${host} does not know this host by its key, so it needs a registration token: give --token-file FILE, with what edgeplatformctl token create has printed; - is standard input. Nothing was changed`,
    )
  if (cause) throw refusal(cause)
  const record = readRecord(body)
  if (!record) throw foreign(status, host)
  const { edgeHostUid, name, projectUid, projectName } = record
  const where = projectUid === '' ? 'in no project' : `in the project ${projectName || projectUid}`
  tell(
    'token',
    edgeHostUid === ''
      ? oneLine(`is accepted; this host will be ${name}, ${where}`)
      : // Without a token it does not say the name.
        oneLine(
          `is not needed: the platform knows this host by its key, ${name === '' ? '' : `as ${name}, `}${where}`,
        ),
  )
  return record
}

/** The failure for a certificate that is not accepted; it has the fingerprint, to be compared with the platform's. */
function distrust(cause: Cause, { ca, fingerprint }: Trust, host: string, shown: string): Failure {
  const compare = `The SHA-256 fingerprint of the certificate that was shown is
  ${shown}
Compare it with the one that this shows on the machine of the platform: sudo edgeplatformctl status.`
  if (cause.kind === 'certificateIssuer')
    return new Failure(
      'untrusted',
      `${ca === undefined ? 'this host does not know' : 'the file of --ca-file does not say'} who issued the certificate of ${host}. ${compare}
If they match, add: --fingerprint ${shown}
Or give the authority that has signed it: --ca-file FILE. Nothing was changed`,
    )
  if (cause.kind === 'fingerprint' || cause.kind === 'proxyOpensTls')
    return new Failure(
      'untrusted',
      `${inOptions(cause.message)}. ${compare}
${fingerprint === undefined ? `If they match, add: --fingerprint ${shown}` : `--fingerprint is ${fingerprint}`}. Nothing was changed`,
    )
  return refusal(cause)
}

const refusal = ({ message }: Cause) =>
  new Failure('failed', `${oneLine(inOptions(message))}. Nothing was changed`)

/** Causes name settings, since the daemon has them too; here they are options. */
const inOptions = (message: string): string =>
  message
    .replaceAll('platform.caFile', '--ca-file')
    .replaceAll('platform.fingerprint', '--fingerprint')
    .replaceAll('platform.proxy', '--proxy')
    .replaceAll('platform.url', 'the URL')

/** `edgehostctl` and the words of a command of this program. */
export const command = (words: string): string => `sudo ${program.ctl} ${words}`
