import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { readCores, readTotalMemory, readHostName, readOperatingSystem, readSecureBoot } from './machine.ts'
import { readDisks, type Disk } from './storage/disks.ts'
import { readDns, readLinkDns } from './network/dns.ts'
import type { Failure, HostFacts } from './document.ts'
import { createFact, type FactOptions, type FactReading, type RefreshClass, type Supplement } from './fact.ts'
import type { HostFiles } from './files.ts'
import { readDisplayControllers, toDisplays, toGpus, type Display, readNvidia } from './graphics/gpus.ts'
import { createAskIp, readIpv4Addresses, readNetwork, type Ipv4Addresses } from './network/network.ts'
import { readNtp } from './time/ntp.ts'
import type { HostUsage } from './schemas.ts'
import { bytesToText, readMounts, createSpaces } from './storage/mounts.ts'

/** The facts to read: `all` is every fact that can change, a class only its own. */
export type RefreshScope = 'all' | RefreshClass

/** All facts of the host: one source and one class for each (docs/host-facts.md). */
export interface Facts {
  /** The facts as last read. */
  values(): HostFacts
  /** The disks and display controllers as last read, each device by itself. */
  hardware(): HostHardware
  /** The space of the file systems of the disks, as last read. */
  fileSystems(): HostUsage['fileSystems']
  /** Whether the time service keeps the clock by a source, as last read; undefined where that is not known. */
  isClockKept(): boolean | undefined
  /** The facts that cannot be read at the moment. */
  failures(): readonly Failure[]
  /** Figures of each reading; the space of file systems is not among them. */
  readings(): readonly FactReading[]
  /** Reads the facts of these scopes; returns when each was read or has reached its deadline. */
  refresh(scopes: ReadonlySet<RefreshScope>): Promise<void>
  /** Reads the facts that the daemon needs before its port opens: host name and network. */
  refreshNames(): Promise<void>
}

/** The disks and display controllers of a host. */
export interface HostHardware {
  readonly disks: readonly Disk[]
  readonly displays: readonly Display[]
}

export interface FactsOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  /** Runs programs that need the devices of the machine, which the unit's sandbox hides. */
  readonly privileged: CommandRunner
  readonly clock: Clock
  readonly log: Logger
  /** Supplies values that the files do not have. */
  readonly supplement?: Supplement
  // An edge of its own, since no file of a fixture tree has these addresses.
  readonly ipv4Addresses?: Ipv4Addresses
  /** A fact that takes longer counts as failed. */
  readonly deadlineMs?: number
}

/** The table of facts. */
export function createFacts(options: FactsOptions): Facts {
  const { files, runner, privileged, supplement, clock, log, deadlineMs = 5_000 } = options
  const { ipv4Addresses = readIpv4Addresses } = options
  const fact = <T>(
    name: string,
    refreshClass: RefreshClass,
    read: () => Promise<T>,
    rest: Partial<FactOptions<T>> = {},
  ) => createFact({ name, refreshClass, read, log, deadlineMs, monotonic: () => clock.monotonic(), ...rest })

  const askIp = createAskIp(runner, () => clock.monotonic())
  const mounts = fact('mounts', 'mounts', () => readMounts(files))
  const facts = {
    cores: fact('cores', 'minutes', () => readCores(files)),
    disks: fact('disks', 'seconds', () => readDisks(files, mounts.value() ?? [])),
    dns: fact('dns', 'seconds', () => readDns(files), { problemsOf: ({ problems }) => problems }),
    displayControllers: fact('gpus', 'minutes', () => readDisplayControllers(files)),
    hostName: fact('hostName', 'seconds', () => readHostName(files)),
    linkDns: fact('linkDns', 'services', () => readLinkDns(files, runner), {
      problemsOf: ({ problems }) => problems,
    }),
    memory: fact('memory', 'minutes', () => readTotalMemory(files)),
    mounts,
    network: fact('network', 'network', () => readNetwork(files, ipv4Addresses, askIp)),
    nvidia: fact('nvidia', 'minutes', () => readNvidia(files, privileged), {
      problemsOf: ({ problems }) => problems,
    }),
    ntp: fact('ntp', 'services', () => readNtp(files, runner), {
      problemsOf: ({ problems }) => problems,
    }),
    operatingSystem: fact('operatingSystem', 'minutes', () => readOperatingSystem(files)),
    secureBoot: fact('secureBoot', 'never', () => readSecureBoot(files)),
  }
  const all = Object.values(facts)
  const asksOthers = new Set<(typeof all)[number]>([facts.linkDns, facts.ntp, facts.nvidia])
  const spaces = createSpaces({ runner, log, deadlineMs })

  const mountPoints = () => [
    ...new Set(
      (facts.disks.value() ?? []).flatMap((disk) => disk.fileSystems.map((each) => each.mountPoint)),
    ),
  ]
  let hasReadAll = false

  const withVendor = (disk: Disk): Disk => {
    const vendor = disk.vendor ?? supplement?.diskVendor(disk.name, disk.size)
    return vendor === undefined ? disk : { ...disk, vendor }
  }
  const disks = () => facts.disks.value()?.map(withVendor)
  const displays = () =>
    toDisplays(facts.displayControllers.value() ?? [], facts.nvidia.value()?.gpus ?? new Map(), supplement)

  return {
    isClockKept: () => facts.ntp.value()?.isSynchronized,
    hardware: () => ({ disks: disks() ?? [], displays: displays() }),
    fileSystems: () =>
      mountPoints().flatMap((mountPoint) => {
        const space = spaces.of(mountPoint)
        if (!space) return []
        const { total: totalBytes, used: usedBytes, free: freeBytes } = space
        return [{ mountPoint: bytesToText(mountPoint), totalBytes, usedBytes, freeBytes }]
      }),
    values: () => ({
      cores: facts.cores.value(),
      disks: disks(),
      dns: facts.dns.value()?.dns,
      gpus: toGpus(displays()),
      hostName: facts.hostName.value(),
      linkDns: facts.linkDns.value()?.servers,
      memory: facts.memory.value(),
      network: facts.network.value(),
      ntp: facts.ntp.value()?.ntp,
      operatingSystem: facts.operatingSystem.value(),
      secureBoot: facts.secureBoot.value(),
      spaceOf: spaces.of,
    }),
    failures: () => [
      ...all.flatMap(({ name, failures }) => failures().map((message) => ({ fact: name, message }))),
      ...spaces.problems().map((message) => ({ fact: 'space', message })),
    ],
    readings: () => all.map((each) => each.reading()),
    async refresh(scopes) {
      const isAll = scopes.has('all')
      const isDue = ({ refreshClass, failures }: (typeof all)[number]) =>
        refreshClass === 'never' ? !hasReadAll || failures().length > 0 : isAll || scopes.has(refreshClass)
      const due = all.filter(isDue)
      if (isAll) hasReadAll = true
      // In this order: the disks need the mounts, and the space needs the mount points of the disks.
      const storage = async () => {
        if (due.includes(mounts)) await mounts.refresh()
        if (due.includes(mounts) || due.includes(facts.disks)) await facts.disks.refresh()
        await spaces.refresh(mountPoints(), isAll || scopes.has('minutes') ? 'all' : 'new')
      }
      const others = due.filter((each) => each !== facts.disks && each !== mounts)
      const refreshEach = (list: typeof others) => list.map((each) => each.refresh())
      // The files are read while the programs and services answer.
      const asked = [storage(), ...refreshEach(others.filter((each) => asksOthers.has(each)))]
      await turn()
      await Promise.all([...asked, ...refreshEach(others.filter((each) => !asksOthers.has(each)))])
    },
    async refreshNames() {
      await Promise.all([facts.hostName.refresh(), facts.network.refresh()])
    },
  }
}
