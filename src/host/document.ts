import type { Disk } from './disks.ts'
import type { Dns } from './dns.ts'
import type { Gpu } from './gpus.ts'
import type { Network } from './network.ts'
import type { Ntp } from './ntp.ts'
import type { OperatingSystem } from './operating-system.ts'
import { toMiB } from './memory.ts'
import type { EdgeHostInfo } from './schemas.ts'
import { settingsOf } from './settings.ts'

/** What is known about the host at a moment; undefined is what could not be read yet. */
export interface HostFacts {
  readonly cores: number | undefined
  readonly disks: readonly Disk[] | undefined
  readonly dns: Dns | undefined
  readonly gpus: readonly Gpu[] | undefined
  readonly hostName: string | undefined
  /** Bytes. */
  readonly memory: number | undefined
  readonly network: Network | undefined
  readonly ntp: Ntp | undefined
  readonly operatingSystem: OperatingSystem | undefined
}

/** What does not come from the machine. */
export interface HostSettings {
  readonly id: string
  readonly name: string
  readonly mode: 'airgap' | 'connected'
  readonly agentVersion: string
  /** As Debian spells it. */
  readonly archType: string
}

/** A fact that cannot be read, and why. */
export interface Failure {
  readonly name: string
  readonly reason: string
}

/** The reply, but for the times in its metadata. */
export type HostDocument = Pick<EdgeHostInfo, 'spec' | 'status'>

/** Lays facts out as the wire has them. What is not known is absent or an empty list. */
export function toDocument(
  facts: HostFacts,
  settings: HostSettings,
  failures: readonly Failure[],
): HostDocument {
  const dns = facts.dns ?? { nameservers: [], options: [], searchDomains: [] }
  return {
    spec: {
      connectionMode: settings.mode,
      hardwareSpec: {
        archType: settings.archType,
        cpu: facts.cores === undefined ? {} : { cores: facts.cores },
        disks: facts.disks ?? [],
        gpus: facts.gpus ?? [],
        memory: facts.memory === undefined ? {} : { sizeInMB: toMiB(facts.memory) },
        os: facts.operatingSystem ?? {},
      },
      managementMode: settingsOf(settings.mode).managementMode,
      networkInfo: (facts.network?.nics ?? []).map((nic) => ({
        ...nic,
        // Servers of the whole host are asked over the default interface, unless links have their own.
        dns: nic.dns ?? (nic.isDefault ? dns.nameservers : []),
      })),
    },
    status: {
      agentVersion: settings.agentVersion,
      ...(failures.length > 0 ? { conditions: failures.map(toCondition) } : {}),
      configurationStatus: 'pending',
      dns,
      ...(facts.hostName === undefined ? {} : { hostName: facts.hostName }),
      ntp: facts.ntp ?? { fallbackNtpServers: [], ntpServers: [] },
      // Nothing registers a connected host yet.
      registrationStatus: settings.mode === 'airgap' ? 'not applicable' : 'pending',
    },
  }
}

function toCondition({ name, reason }: Failure) {
  return { message: reason, reason: 'CannotBeRead', status: 'False', type: name }
}
