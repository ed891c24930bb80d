import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { commands } from './step-commands.ts'
import { units } from './paths.ts'

const cgroups = '/sys/fs/cgroup'

/**
 * Folders that containerd and runc make outside of their configured ones, the shared folder of network namespaces, and the cgroups of
 * pods and of our containerd. In hierarchies that systemd does not use, as cgroup v1 has them, no other program removes these.
 */
const leftFolders = ['/run/containerd', '/run/netns']
const leftCgroups = ['kubepods.slice', 'kubepods', `system.slice/${units.containerd}`]

/** Removes what stays when all pods have ended, as far as it is empty: what another containerd or a process uses is not. */
export async function removeLeftovers(): Promise<void> {
  const hierarchies = ['', ...(await readdir(cgroups).catch(() => []))]
  const ofPods = hierarchies.flatMap((each) => leftCgroups.map((name) => join(cgroups, each, name)))
  for (const folder of [...leftFolders, ...ofPods]) await removeEmpty(folder)
}

/**
 * Forgets the scopes of containers that were killed, which systemd keeps as failed. Only those of pods: another containerd calls its
 * scopes the same.
 */
export async function forgetFailedScopes(): Promise<void> {
  const shown = await commands
    .run('systemctl', ['show', '--property=Id,Slice', 'cri-containerd-*.scope'])
    .catch(() => '')
  const scopes = scopesOfPods(shown)
  if (scopes.length > 0) await commands.attempt('systemctl', ['reset-failed', ...scopes])
}

/** @param shown properties `Id` and `Slice`, as systemctl show prints them */
export const scopesOfPods = (shown: string): readonly string[] =>
  shown.split('\n\n').flatMap((text) => {
    const properties = new Map(text.split('\n').map((line) => line.split('=', 2) as [string, string]))
    return properties.get('Slice')?.startsWith('kubepods') ? [properties.get('Id') ?? ''] : []
  })

/** Removes the empty folders from below upwards. */
export async function removeEmpty(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeEmpty(join(folder, entry.name))
  await rmdir(folder).catch(() => undefined)
}
