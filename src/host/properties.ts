import type { CommandRunner } from '../system/runner.ts'
import { ask } from './ask.ts'

/** An interface of an object that a service has on the system bus. */
export interface ServiceObject {
  readonly service: string
  readonly path: string
  readonly interface: string
}

/** Properties by name: the type as D-Bus spells it, and the value as `busctl --json=short` writes it. */
export type Properties = Readonly<
  Record<string, { readonly type: string; readonly data: unknown } | undefined>
>

// Two questions one after the other have to fit into what a fact may take. busctl keeps the time of the answer, the runner
// that of everything, a bus that does not let us in included.
const answerSec = 2
const timeoutMs = 2_400

/**
 * Asks a running service for the properties of an object: busctl(1), the method GetAll. Never by `get-property`, which
 * starts a stopped service whatever `--auto-start` says.
 * @returns the properties, or in one line why there is no answer; never an error
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
