import type { CommandRunner } from '../../system/runner.ts'
import { readChrony, readChronyConfiguration } from './chrony.ts'
import { passRefused, type HostFiles } from '../files.ts'
import { readNtpdConfiguration } from './ntpd.ts'
import { isServiceRunning } from '../services.ts'
import { ntpOf, type Ntp, type NtpReading } from './time-source.ts'
import { readTimesyncd, readTimesyncdConfiguration } from './timesyncd.ts'

export type { Ntp, NtpReading } from './time-source.ts'

interface TimeService {
  /** Names of its unit in the distributions. */
  readonly units: readonly string[]
  /** Asks the running service. Where this is missing, only the configuration is read. */
  readonly ask?: (files: HostFiles, runner: CommandRunner) => Promise<NtpReading>
  /** undefined where the service is not installed. */
  readonly configuration: (files: HostFiles) => Promise<Ntp | undefined>
}

const services: readonly TimeService[] = [
  {
    units: ['systemd-timesyncd.service'],
    ask: readTimesyncd,
    configuration: readTimesyncdConfiguration,
  },
  {
    units: ['chrony.service', 'chronyd.service'],
    ask: readChrony,
    configuration: readChronyConfiguration,
  },
  // Not asked: ntpq shows addresses and truncated names, never the configured names.
  { units: ['ntpsec.service', 'ntp.service', 'ntpd.service'], configuration: readNtpdConfiguration },
]

/**
 * Reads the time servers of this host: those that the running time service uses, or, where none runs, those in the
 * configuration of the installed one.
 * @returns in `problems` why a service did not answer, where the configuration files are then used, and which of these are no files
 */
export async function readNtp(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  const read = passRefused(files)
  const { ntp, problems } = await readServers(read.files, runner)
  return { ntp, problems: [...problems, ...read.problems] }
}

async function readServers(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  const running = await findRunning(files)
  if (running?.ask) return running.ask(files, runner)
  for (const { configuration } of running ? [running] : services) {
    const ntp = await configuration(files)
    if (ntp !== undefined) return { ntp, problems: [] }
  }
  return { ntp: ntpOf([]), problems: [] }
}

async function findRunning(files: HostFiles): Promise<TimeService | undefined> {
  for (const service of services) {
    for (const unit of service.units) {
      if (await isServiceRunning(files, unit)) return service
    }
  }
  return undefined
}
