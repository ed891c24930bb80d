import type { HostFiles } from './files.ts'

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
