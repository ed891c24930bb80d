import type { HostFiles } from './files.ts'
import type { HostUsage } from './schemas.ts'
import { isServiceRunning } from './services.ts'
import type { Snapshot } from './snapshot.ts'

// The document of the host is one text with a strong tag, and the platform gets it when it changes. What moves each second is a resource of its own, so
// that the document stays as it is. All of it is kernel memory or known already: a request reads some small files of /proc and /sys.

/**
 * What the host is doing now. Figures that the kernel does not show are absent.
 * @param snapshot the facts as last read: space is read in minutes, since a disk may hang, and so is the time service
 */
export async function readUsage(
  files: HostFiles,
  snapshot: Pick<Snapshot, 'nics' | 'fileSystems' | 'isClockKept'>,
): Promise<HostUsage> {
  const [uptime, load, memory] = await Promise.all(
    ['uptime', 'loadavg', 'meminfo'].map((name) => files.text(`/proc/${name}`)),
  )
  const links = snapshot.nics().map(async ({ nicName: name }) => {
    const state = (await files.text(`/sys/class/net/${name}/operstate`))?.trim()
    return { name, state: state || 'unknown' }
  })
  const isSynchronized = (await readClock(files)) ?? snapshot.isClockKept()
  return {
    ...parseUptime(uptime),
    ...parseLoad(load),
    ...parseMemory(memory),
    clock: isSynchronized === undefined ? {} : { isSynchronized },
    fileSystems: [...snapshot.fileSystems()],
    links: await Promise.all(links),
  }
}

/** `uptime` of proc_uptime(5): seconds since the boot, with sleep. */
export function parseUptime(text = ''): Pick<HostUsage, 'uptimeSeconds'> {
  const [, seconds] = /^(\d+)\.\d+ /.exec(text) ?? []
  return seconds === undefined ? {} : { uptimeSeconds: Number(seconds) }
}

/** `loadavg` of proc_loadavg(5). */
export function parseLoad(text = ''): Pick<HostUsage, 'load'> {
  const [, ...averages] = /^(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) /.exec(text) ?? []
  const [oneMinute, fiveMinutes, fifteenMinutes] = averages.map(Number)
  return oneMinute === undefined || fiveMinutes === undefined || fifteenMinutes === undefined
    ? {}
    : { load: { oneMinute, fiveMinutes, fifteenMinutes } }
}

/** `meminfo` of proc_meminfo(5). Used is what programs could not get, caches not included: as free(1) has it. */
export function parseMemory(text = ''): Pick<HostUsage, 'memory'> {
  const bytesOf = (name: string) => {
    const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? []
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1_024
  }
  const [totalBytes, availableBytes] = [bytesOf('MemTotal'), bytesOf('MemAvailable')]
  if (totalBytes === undefined || availableBytes === undefined) return {}
  return { memory: { totalBytes, usedBytes: totalBytes - availableBytes, availableBytes } }
}

/**
 * Whether the clock was set by a time server since the boot: systemd-timesyncd leaves a file then (systemd-timesyncd.service(8)). Other services leave
 * no such file, and the kernel shows its own view by a system call alone, which would cost a process for each reading: undefined. chronyd is asked
 * every five minutes, with its servers.
 */
async function readClock(files: HostFiles): Promise<boolean | undefined> {
  if (!(await isServiceRunning(files, 'systemd-timesyncd.service'))) return undefined
  return (await files.text('/run/systemd/timesync/synchronized')) !== undefined
}
