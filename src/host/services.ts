import type { HostFiles } from './files.ts'
import type { CommandRunner } from '../system/runner.ts'
import { ask } from './ask.ts'

/** The unified hierarchy; its place on a hybrid system, where it counts the processes of services; systemd's old hierarchy. */
export const cgroupHierarchies = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/systemd']

/**
 * Reads whether a system service has a process now, from the control groups. Neither a program nor the bus is asked, since
 * that could start the service. The control groups are readable in the sandbox: `ProtectControlGroups=yes` only makes
 * them read-only (systemd.exec(5)).
 * @param unit the unit's own name and no alias, since the control group has this name; for example `chrony.service`
 */
export async function isServiceRunning(files: HostFiles, unit: string): Promise<boolean> {
  for (const hierarchy of cgroupHierarchies) {
    const group = `${hierarchy}/system.slice/${unit}`
    // This covers the groups below as well (cgroup-v2.rst); version 1 has only the list of processes.
    const events = await files.text(`${group}/cgroup.events`)
    if (events !== undefined) return /^populated 1$/m.test(events)
    if ((await files.text(`${group}/cgroup.procs`))?.trim()) return true
  }
  return false
}

/** An interface of an object of a service on the system bus. */
interface ServiceObject {
  readonly service: string
  readonly path: string
  readonly interface: string
}

/** Properties by name: the type as D-Bus spells it, and the value as `busctl --json=short` writes it. */
export type Properties = Readonly<
  Record<string, { readonly type: string; readonly data: unknown } | undefined>
>

// Two calls one after the other have to fit into the deadline of a fact. busctl limits the time of the answer, the runner
// the time of the whole call, including a bus that does not accept the connection.
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
