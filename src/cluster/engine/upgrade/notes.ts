import { readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { replaceFile, syncFolder } from '../../../system/files.ts'
import type { VersionChange } from '../../observed.ts'
import { readNote } from '../note.ts'
import { kubernetesFiles, type ClusterPaths } from '../paths.ts'

/** A change of the version as it is noted: on the disk before what it says is begun. */
export interface ChangeNote extends VersionChange {
  /** When it was begun; milliseconds since 1970. */
  readonly at: number
}

const phases: readonly VersionChange['phase'][] = ['copying', 'copied', 'upgrading', 'upgraded', 'restoring']

/** @returns undefined where none is under way, `damaged` where the file says nothing */
export async function readChange(
  paths: Pick<ClusterPaths, 'change'>,
): Promise<ChangeNote | 'damaged' | undefined> {
  const noted = await readNote<ChangeNote>(paths.change)
  if (noted === undefined || noted === 'damaged') return noted
  const isWhole =
    typeof noted.from === 'string' &&
    typeof noted.to === 'string' &&
    Number.isInteger(noted.generation) &&
    phases.includes(noted.phase)
  return isWhole ? noted : 'damaged'
}

export const writeChange = (paths: Pick<ClusterPaths, 'change'>, note: ChangeNote) =>
  replaceFile(paths.change, JSON.stringify(note), 0o600)

export async function removeChange(paths: Pick<ClusterPaths, 'change'>): Promise<void> {
  await rm(paths.change, { force: true })
  await syncFolder(dirname(paths.change))
}

export const writeVersion = (paths: Pick<ClusterPaths, 'version'>, version: string) =>
  replaceFile(paths.version, JSON.stringify({ version }), 0o600)

/**
 * The version of the control plane that is set up: as it is noted; without a note, that of the API server's image in its manifest.
 * @returns undefined where neither says it
 */
export async function readVersion(
  paths: Pick<ClusterPaths, 'version'>,
  manifests: string = kubernetesFiles.manifests,
): Promise<string | undefined> {
  const noted = await readNote<{ readonly version: string }>(paths.version)
  if (noted !== undefined && noted !== 'damaged' && typeof noted.version === 'string') return noted.version
  const manifest = await readFile(join(manifests, 'kube-apiserver.yaml'), 'utf8').catch(() => '')
  return versionInManifest(manifest)
}

/** @param manifest of the API server, as kubeadm writes it: the tag of its image is the version of Kubernetes. Pure. */
export const versionInManifest = (manifest: string): string | undefined =>
  /^\s+image: \S+\/kube-apiserver:v(\d+\.\d+\.\d+\S*)\s*$/m.exec(manifest)?.[1]
