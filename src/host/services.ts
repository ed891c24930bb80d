import type { HostFiles } from './files.ts'

// The unified hierarchy; beside the old ones, where it counts the processes of services; the old one of systemd.
const hierarchies = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/systemd']

/**
 * Whether a service of the system has a process now. The control groups say it: neither a program nor the bus
 * is asked, which might start what it asks for. Readable in the sandbox: `ProtectControlGroups=yes` only
 * takes the right to write (systemd.exec(5)).
 * @param unit the unit's own name, no alias: the control group carries that, for example `chrony.service`
 */
export async function isServiceRunning(files: HostFiles, unit: string): Promise<boolean> {
  for (const hierarchy of hierarchies) {
    const group = `${hierarchy}/system.slice/${unit}`
    // Counts the groups below as well (cgroup-v2.rst); version 1 has the list of processes only.
    const events = await files.text(`${group}/cgroup.events`)
    if (events !== undefined) return /^populated 1$/m.test(events)
    if ((await files.text(`${group}/cgroup.procs`))?.trim()) return true
  }
  return false
}
