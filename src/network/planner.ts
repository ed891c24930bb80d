import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { resolvedService } from '../host/network/dns.ts'
import type { HostFiles } from '../host/files.ts'
import { isServiceRunning } from '../host/services.ts'
import { planIfupdown } from './backends/ifupdown.ts'
import { planNetworkd } from './backends/networkd.ts'
import { planNetworkManager } from './backends/networkmanager.ts'
import type { Planned } from './backends/planned.ts'
import type { Backend, ChangeSet } from './change-set.ts'
import type { NetworkReading } from './links/links.ts'
import { backendNames } from './links/owners.ts'
import { judge, neededPrograms, type PreflightFacts } from './preflight/preflight.ts'
import { warningsOf, type Problem, type Read, type WantedChange } from './wanted.ts'

/** A change that may be made, with what has to be said about it. */
export interface Prepared {
  /** Absent where the host is so already. */
  readonly change?: ChangeSet
  /** Routes that go with it, one clause each. */
  readonly lostRoutes: readonly string[]
  /** Addresses under which the host will be reached; a leased one is not known before. */
  readonly reachableBy: readonly string[]
  readonly warnings: readonly string[]
}

/** Plans changes of the network. */
export interface Planner {
  /**
   * Reads the network, judges a change and plans it.
   * @param dropsAddresses `?dropAddress=true`
   * @throws AppError BadRequest, 400, with all problems in `details.problems`, each with its field
   */
  prepare(read: Read, dropsAddresses: boolean): Promise<Prepared>
}

interface PlannerOptions {
  readonly files: HostFiles
  readonly read: () => Promise<NetworkReading>
  /** Addresses of the cluster on this host, canonical. */
  readonly clusterAddresses: () => readonly string[]
}

/** Backends whose links can be changed. */
const planOf: Readonly<Partial<Record<Backend, (reading: NetworkReading, wanted: WantedChange) => Planned>>> =
  {
    networkd: planNetworkd,
    networkmanager: planNetworkManager,
    ifupdown: planIfupdown,
  }

/** Why links of a backend cannot be changed; undefined where they can. Continues a sentence that begins with the link. */
export const refusalOf = (backend: Backend): string | undefined =>
  planOf[backend] !== undefined
    ? undefined
    : `is configured by ${backendNames[backend]}, whose links this version of edgehostd can only show; change it with the tools of ${backendNames[backend]}`

export function createPlanner({ files, read, clusterAddresses }: PlannerOptions): Planner {
  return {
    async prepare(body, dropsAddresses) {
      if ('problems' in body) throw refusedBy(body.problems)
      const { wanted } = body
      const reading = await read()
      const facts: PreflightFacts = {
        ...(await readFacts(files)),
        clusterAddresses: new Set(clusterAddresses()),
        refusal: refusalOf,
        dropsAddresses,
      }
      const { problems, backend, lostRoutes, reachableBy } = judge(reading, wanted, facts)
      const plan = backend === undefined ? undefined : planOf[backend]
      if (problems.length > 0 || plan === undefined) throw refusedBy(problems)
      const planned = plan(reading, wanted)
      if (planned.kind === 'refused') throw refusedBy(planned.problems)
      return {
        ...(planned.kind === 'change' ? { change: planned.change } : {}),
        lostRoutes,
        reachableBy,
        warnings: warningsOf(wanted),
      }
    },
  }
}

/** All problems in one refusal; the message is the first of them. */
export function refusedBy(problems: readonly Problem[]): AppError {
  const [first, ...more] = problems
  const others = more.length === 0 ? '' : `; and ${more.length} more, see details.problems`
  return new AppError(generalErrors.BadRequest, `${first?.field} ${first?.reason}${others}`, {
    details: { field: first?.field, problems },
  })
}

const programFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin', '/usr/local/sbin', '/usr/local/bin']

/** Programs and services of this host that a change needs. */
async function readFacts(
  files: HostFiles,
): Promise<Pick<PreflightFacts, 'usesNameservers' | 'missingPrograms' | 'hasBus'>> {
  const programs = new Set((await Promise.all(programFolders.map((folder) => files.names(folder)))).flat())
  const isResolved = await isServiceRunning(files, resolvedService)
  return {
    // What networkd has of name servers goes to resolved alone; NetworkManager writes resolv.conf itself.
    usesNameservers: (backend) =>
      backend === 'networkmanager' || (backend === 'ifupdown' ? programs.has('resolvconf') : isResolved),
    missingPrograms: new Set(neededPrograms.filter((program) => !programs.has(program))),
    hasBus: (await files.names('/run/dbus')).includes('system_bus_socket'),
  }
}
