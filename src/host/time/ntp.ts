import type { CommandRunner } from '../../system/runner.ts'
import { readChrony, readChronyConfiguration } from './chrony.ts'
import type { HostFiles } from '../files.ts'
import { readNtpdConfiguration } from './ntpd.ts'
import { isServiceRunning } from '../services.ts'
import { ntpOf, type Ntp, type NtpReading } from './time-source.ts'
import { readTimesyncd, readTimesyncdConfiguration } from './timesyncd.ts'

export type { Ntp, NtpReading } from './time-source.ts'

interface TimeService {
  /** As distributions name it. */
  readonly units: readonly string[]
  /** Asks the service; for when it runs. Without it, the configuration is all there is. */
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
  // ntpq shows addresses and cut names, never what was configured.
  { units: ['ntpsec.service', 'ntp.service', 'ntpd.service'], configuration: readNtpdConfiguration },
]

/**
 * The time service that runs says which servers it uses; where none runs, the configuration of the one that is
 * installed says which it would.
 * @returns with the answer, in `problems`, each that failed to answer; the files have answered in its place
 */
export async function readNtp(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
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
