import type { CommandRunner } from '../system/runner.ts'
import { ask } from './ask.ts'

/** An interface of an object of a service on the system bus. */
export interface ServiceObject {
  readonly service: string
  readonly path: string
  readonly interface: string
}

/** Properties by name: the type as D-Bus spells it, and the value as `busctl --json=short` writes it. */
export type Properties = Readonly<
  Record<string, { readonly type: string; readonly data: unknown } | undefined>
>

// Two calls one after the other have to fit into the deadline of a fact. busctl limits the time of the answer, the runner
// that of the whole call, including a bus that does not accept the connection.
const answerSec = 2
const timeoutMs = 2_400

/**
 * Asks a running service for the properties of an object: busctl(1) with the method GetAll. Not with `get-property`, which
 * starts a stopped service regardless of `--auto-start`.
 * @returns the properties, or in one line why there is no answer; it never throws for that
 */
export async function askProperties(
  runner: CommandRunner,
  { service, path, interface: name }: ServiceObject,
): Promise<{ readonly properties: Properties } | { readonly problem: string }> {
  const options = ['--auto-start=no', `--timeout=${answerSec}`, '--json=short']
  const method = ['org.freedesktop.DBus.Properties', 'GetAll', 's', name]
  const answer = await ask(runner, 'busctl', [...options, 'call', service, path, ...method], timeoutMs)
  if ('problem' in answer) return answer
  const properties = parseProperties(answer.stdout)
  return properties === undefined
    ? { problem: `busctl: the answer of ${service} is not of the type a{sv}` }
    : { properties }
}

/** The value of a property; undefined where it is absent or of another type. */
export function propertyOf(properties: Properties, name: string, type: string): unknown {
  const property = properties[name]
  return property?.type === type ? property.data : undefined
}

function parseProperties(text: string): Properties | undefined {
  try {
    const reply = JSON.parse(text) as {
      readonly type?: unknown
      readonly data?: readonly Properties[]
    } | null
    return reply?.type === 'a{sv}' ? reply.data?.[0] : undefined
  } catch {
    return undefined
  }
}
