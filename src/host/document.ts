import type { Mode } from '../base/role.ts'
import type { Disk } from './storage/disks.ts'
import type { Dns, LinkServers } from './network/dns.ts'
import type { Gpu } from './graphics/gpus.ts'
import { toGiB, toMiB, type OperatingSystem } from './machine.ts'
import type { Network } from './network/network.ts'
import type { Ntp } from './time/ntp.ts'
import type { EdgeHostInfo, Nic } from './schemas.ts'
import { settingsOf } from './settings.ts'
import { bytesToText, type Space } from './storage/mounts.ts'

/** The facts of the host at a moment; a fact that could not be read yet is undefined. */
export interface HostFacts {
  readonly cores: number | undefined
  readonly disks: readonly Disk[] | undefined
  readonly dns: Dns | undefined
  readonly gpus: readonly Gpu[]
  readonly hostName: string | undefined
  /** Name servers by interface index. */
  readonly linkDns: LinkServers | undefined
  /** Bytes. */
  readonly memory: number | undefined
  readonly network: Network | undefined
  readonly ntp: Ntp | undefined
  readonly operatingSystem: OperatingSystem | undefined
  /** Undefined on a machine without EFI too. */
  readonly secureBoot: boolean | undefined
  /** Space of the file system at a mount point. */
  readonly spaceOf: (mountPoint: string) => Space | undefined
}

/** The parts of the reply that do not come from the machine. */
export interface HostSettings {
  readonly id: string
  readonly name: string
  readonly mode: Mode
  readonly agentVersion: string
  /** As Debian spells it. */
  readonly archType: string
  readonly cluster: HostInCluster
  readonly platform: PlatformOfHostInfo
  /** Name of the interface that is chosen for management; empty: none. */
  readonly management: string
}

/** State of this host in a cluster. */
export interface HostInCluster {
  /** `pending` without a cluster; `inprogress` until the cluster runs, and while it is deleted. */
  readonly configurationStatus: 'pending' | 'inprogress' | 'configured'
  /** `init` until its control plane is set up; `unknown` without a cluster. */
  readonly nodeRole: 'init' | 'controlplane' | 'worker' | 'unknown'
  /** Whether there is a cluster. */
  readonly isClusterPhase: boolean
}

/** Report of this host on its platform. */
export interface PlatformOfHostInfo {
  /** Its URL, in connected mode. */
  readonly url?: string
  readonly registrationStatus: string
  /** Why this host is not connected to it. */
  readonly problem?: { readonly reason: string; readonly message: string }
}

/** Of a host in airgap mode. */
export const notApplicable: PlatformOfHostInfo = { registrationStatus: 'not applicable' }

export const outOfCluster: HostInCluster = {
  configurationStatus: 'pending',
  nodeRole: 'unknown',
  isClusterPhase: false,
}

/** A fact, or a part of one, that cannot be read, and why. */
export interface Failure {
  readonly fact: string
  readonly message: string
}

/** The reply without its metadata. */
export type HostDocument = Pick<EdgeHostInfo, 'spec' | 'status'>

/**
 * The interfaces, with the name servers that are asked over them.
 * @param management name of the chosen one; empty where none is chosen
 */
export const shownNics = ({ network, linkDns, dns }: HostFacts, management: string): readonly Nic[] =>
  (network?.nics ?? []).map(({ index, ...nic }) => ({
    ...nic,
    ...(nic.nicName === management ? { isManagement: true } : {}),
    // The servers of the whole host are asked over the default interface, unless that has its own.
    dns: [...(linkDns?.get(index) ?? (nic.isDefault ? (dns?.nameservers ?? []) : []))],
  }))

/** Makes the reply from the facts. A fact that is not known is absent or an empty list. */
export function toDocument(
  facts: HostFacts,
  settings: HostSettings,
  failures: readonly Failure[],
): HostDocument {
  const { url, problem, registrationStatus } = settings.platform
  const conditions = [
    ...failures.map(toCondition),
    ...(problem ? [{ ...problem, status: 'False', type: 'Platform' }] : []),
  ]
  const dns = facts.dns ?? { nameservers: [], options: [], searchDomains: [] }
  return {
    spec: {
      connectionMode: settings.mode,
      hardwareSpec: {
        archType: settings.archType,
        cpu: facts.cores === undefined ? {} : { cores: facts.cores },
        disks: (facts.disks ?? []).map((disk) => toDisk(disk, facts.spaceOf)),
        gpus: facts.gpus,
        memory: facts.memory === undefined ? {} : { sizeInMB: toMiB(facts.memory) },
        os: facts.operatingSystem ?? {},
      },
      hostInfo: {
        hostState: settings.cluster.isClusterPhase ? 'cluster' : 'registration',
        hostType: 'agent-mode',
        ...(facts.secureBoot === undefined ? {} : { secureBoot: facts.secureBoot }),
      },
      managementMode: settingsOf(settings.mode).managementMode,
      nodeRole: settings.cluster.nodeRole,
      ...(url === undefined ? {} : { platformEndpointURL: url }),
      networkInfo: [...shownNics(facts, settings.management)],
    },
    status: {
      agentVersion: settings.agentVersion,
      ...(conditions.length > 0 ? { conditions } : {}),
      configurationStatus: settings.cluster.configurationStatus,
      dns,
      ...(facts.hostName === undefined ? {} : { hostName: facts.hostName }),
      isClusterPhase: settings.cluster.isClusterPhase,
      ntp: facts.ntp ?? { fallbackNtpServers: [], ntpServers: [] },
      registrationStatus,
    },
  }
}

function toDisk({ controller, size, vendor, fileSystems }: Disk, spaceOf: HostFacts['spaceOf']) {
  const partitions = fileSystems.map(({ fileSystemType, mountPoint }) => {
    const space = spaceOf(mountPoint)
    return {
      fileSystemType,
      ...(space ? { freeSpace: toGiB(space.free) } : {}),
      mountPoint: bytesToText(mountPoint),
      ...(space ? { totalSpace: toGiB(space.total), usedSpace: toGiB(space.used) } : {}),
    }
  })
  return { ...(controller ? { controller } : {}), size, ...(vendor ? { vendor } : {}), partitions }
}

function toCondition({ fact, message }: Failure) {
  return { message, reason: 'CannotBeRead', status: 'False', type: fact }
}
