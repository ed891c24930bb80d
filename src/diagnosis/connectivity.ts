// Ping and traceroute. The name is resolved first, by getent(1) and so as all programs of the host do, in a child that cannot hold up the threads of
// the daemon; the program gets the number after `--`, in a unit with a user of its own (`verbs.ts`).

import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import type { Verbs, VerbCaller } from '../verbs/call.ts'
import { VerbRefused } from '../verbs/verb.ts'
import { diagnosisErrors } from './codes.ts'
import { parseHops, parsePing } from './probe-output.ts'
import type { PingResponse, TraceRouteResponse } from './schemas.ts'
import { familyOf, isHostAddress, parseTarget } from './target.ts'
import { notInstalled, packageOf, ping, traceroute, type Said } from './verbs.ts'

export interface Question {
  readonly target: string
  /** Only addresses of this family. */
  readonly family?: 4 | 6 | undefined
  readonly caller: VerbCaller
  /** Ends it. */
  readonly signal: AbortSignal
}

/** A name has no address. The message is a clause. */
export class NotResolved extends Error {
  override readonly name = 'NotResolved'
}

export interface Connectivity {
  /** @throws AppError BadRequest, ToolMissing, DiagnosisBusy, NotReady */
  ping(question: Question): Promise<Required<PingResponse>>
  /** @throws AppError as `ping` */
  traceroute(question: Question): Promise<Required<TraceRouteResponse>>
  /** Sends a few packets of a size, or of any. @throws AppError as `ping` */
  echo(address: string, question: Question, payloadBytes?: number): Promise<Said>
  /** Addresses of a name, in the order of RFC 6724; of an address itself. @throws NotResolved */
  resolve(host: string, question: Pick<Question, 'family' | 'signal'>): Promise<readonly string[]>
  /** Holds one of five places while it works. @throws AppError DiagnosisBusy */
  inPlace<T>(work: () => Promise<T>): Promise<T>
}

const places = 5
const resolveMs = 10_000

export function createConnectivity({
  runner,
  verbs,
}: {
  readonly runner: CommandRunner
  readonly verbs: Verbs
}): Connectivity {
  let taken = 0

  async function inPlace<T>(work: () => Promise<T>): Promise<T> {
    if (taken >= places)
      throw new AppError(
        diagnosisErrors.DiagnosisBusy,
        `${places} diagnoses run already; try again when one has ended`,
        { retryAfterSec: 5 },
      )
    taken += 1
    try {
      return await work()
    } finally {
      taken -= 1
    }
  }

  async function resolve(host: string, { family, signal }: Pick<Question, 'family' | 'signal'>) {
    const isWanted = (address: string) => family === undefined || familyOf(address) === family
    if (isHostAddress(host)) {
      if (isWanted(host)) return [host]
      throw new NotResolved(`${host} is not an IPv${family ?? 4} address`)
    }
    const { exitCode, stdout } = await runner
      .run('getent', ['ahosts', '--', host], { timeoutMs: resolveMs, signal })
      .catch((error: unknown) => {
        if (error instanceof CommandFailed && error.reason === 'timed-out')
          throw new NotResolved(`no resolver has answered for ${host} within ${resolveMs / 1_000} s`)
        throw error
      })
    const found = stdout.split('\n').flatMap((line) => line.split(/\s+/)[0] || [])
    const addresses = [...new Set(found)].filter((address) => isHostAddress(address))
    if (exitCode !== 0 || addresses.length === 0) throw new NotResolved(`${host} has no address`)
    const wanted = addresses.filter(isWanted)
    if (wanted.length === 0) throw new NotResolved(`${host} has no IPv${family ?? 4} address`)
    return wanted
  }

  /** Calls a verb, and gives its failures the words of the API. */
  async function call(tool: keyof typeof packageOf, work: () => Promise<Said>): Promise<Said> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof VerbRefused || (error instanceof CommandFailed && error.reason === 'not-started'))
        throw new AppError(diagnosisErrors.ToolMissing, notInstalled(tool, packageOf[tool]), {
          details: { tool, package: packageOf[tool] },
        })
      if (error instanceof CommandFailed && error.reason === 'timed-out')
        throw new AppError(generalErrors.NotReady, `${tool} was ended after 30 s; try again`)
      throw error
    }
  }

  const echo: Connectivity['echo'] = (address, { caller, signal }, payloadBytes) =>
    call('ping', () =>
      verbs.call(
        ping,
        payloadBytes === undefined ? { address, count: 5 } : { address, count: 1, payloadBytes },
        caller,
        signal,
      ),
    )

  return {
    inPlace,
    resolve,
    echo,
    ping: (question) =>
      inPlace(async () => {
        const { host, port } = parseTarget(question.target, 'endpoint')
        const target = question.target
        const address = await firstOf(resolve(host, question))
        if (address instanceof NotResolved)
          return {
            pingHostStatus: `ping: ${address.message}\n`,
            result: {
              target,
              isReachable: false,
              transmitted: 0,
              received: 0,
              errors: [address.message],
              next: nextForName(host),
            },
          }
        const { text } = await echo(address, question)
        const found = parsePing(text)
        const asTcp =
          port === undefined
            ? ''
            : `; a ping says nothing of port ${port}: edgehostctl network check ${target} --kind tcp`
        const next = found.isReachable
          ? asTcp.slice(2)
          : `some hosts answer no ping, so try: edgehostctl network traceroute ${host}${asTcp}`
        return {
          pingHostStatus: text,
          result: { target, address, ...found, ...(next === '' ? {} : { next }) },
        }
      }),
    traceroute: (question) =>
      inPlace(async () => {
        const { target, caller, signal } = question
        const { host } = parseTarget(target, 'endpoint')
        const address = await firstOf(resolve(host, question))
        if (address instanceof NotResolved)
          return {
            traceRouteStatus: `traceroute: ${address.message}\n`,
            result: { target, isReachable: false, hops: [], next: nextForName(host) },
          }
        const { text, exitCode } = await call('traceroute', () =>
          verbs.call(traceroute, { address }, caller, signal),
        )
        const hops = parseHops(text)
        if (exitCode !== 0 && hops.length === 0 && /invalid option|usage:/i.test(text))
          throw new AppError(
            diagnosisErrors.ToolMissing,
            `the traceroute of this host is another one; install the package ${packageOf.traceroute}`,
            { details: { tool: 'traceroute', package: packageOf.traceroute } },
          )
        const isReachable = hops.some(({ addresses }) => addresses.includes(address))
        const last = hops.findLast(({ addresses }) => addresses.length > 0)
        const next = isReachable
          ? undefined
          : last === undefined
            ? 'no router has answered: look at the default route (ip route) and at the cable'
            : `${last.addresses.join(', ')} is the last that answered: look there, or at what is behind it`
        return {
          traceRouteStatus: text,
          result: { target, address, isReachable, hops, ...(next === undefined ? {} : { next }) },
        }
      }),
  }
}

const firstOf = (addresses: Promise<readonly string[]>): Promise<string | NotResolved> =>
  addresses.then(
    ([first = '']) => first,
    (error: unknown) => {
      if (error instanceof NotResolved) return error
      throw error
    },
  )

/** What to do about a name without an address. */
export const nextForName = (name: string): string =>
  `check the spelling, and the name servers of this host (edgehostctl host show, getent ahosts ${name})`
