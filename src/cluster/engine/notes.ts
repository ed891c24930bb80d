import { readFile, rm } from 'node:fs/promises'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { type ClusterPaths, kubernetesFiles } from './paths.ts'
import { dirname, join } from 'node:path'
import type { VersionChange } from '../loop/observed.ts'
import { StepFailed } from '../loop/step.ts'

/**
 * Reads a file in which the engine notes what it has done on this host.
 * @returns undefined where it is not there, `damaged` where it cannot be read or is no JSON
 */
export async function readNote<T extends object>(path: string): Promise<T | 'damaged' | undefined> {
  try {
    const noted = JSON.parse(await readFile(path, 'utf8')) as T | null
    return typeof noted === 'object' && noted !== null ? noted : 'damaged'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : 'damaged'
  }
}

/**
 * Progress of the action `kubeadm-init`, on the disk before `kubeadm init` begins, when that has ended well, and when the node has its
 * labels too. Only an unfinished `begun` has to be cleared.
 */
interface Initialisation {
  readonly uid: string
  readonly state: (typeof states)[number]
}

const states = ['begun', 'initialised', 'done'] as const

/** @returns undefined where nothing was started, `damaged` where the file says nothing */
export async function readInitialisation(
  paths: Pick<ClusterPaths, 'initialisation'>,
): Promise<Initialisation | 'damaged' | undefined> {
  const noted = await readNote<Initialisation>(paths.initialisation)
  if (noted === undefined || noted === 'damaged') return noted
  return typeof noted.uid === 'string' && states.includes(noted.state) ? noted : 'damaged'
}

export const writeInitialisation = (paths: Pick<ClusterPaths, 'initialisation'>, value: Initialisation) =>
  replaceFile(paths.initialisation, JSON.stringify(value), 0o600)

/** Note of a change of the version: on the disk before the noted phase starts. */
export interface ChangeNote extends VersionChange {
  /** Its start; milliseconds since 1970. */
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
 * The version of the control plane that is set up: as noted; without a note, from the API server's image in its manifest.
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

const marks = { upgrade: 'UpgradeRefused: ', restore: 'RestoreRefused: ' } as const

/**
 * Ends a change of the version of Kubernetes before anything was changed; another try would say the same.
 * @param why one line for operators
 */
export const upgradeRefused = (why: string) => new StepFailed(`${marks.upgrade}${why}`)

/** As `upgradeRefused`, for a way back by hand. */
export const restoreRefused = (why: string) => new StepFailed(`${marks.restore}${why}`)

/** Whether the reason of a failed step ends the change at once. */
export const isRefusal = (reason: string): boolean =>
  Object.values(marks).some((mark) => reason.startsWith(mark))
