import { replaceFile } from '../../system/files.ts'
import { readNote } from './note.ts'
import type { ClusterPaths } from './paths.ts'

/**
 * How far the action `kubeadm-init` is, on the disk before `kubeadm init` begins, when that has ended well, and when the node has its labels
 * too. Only what has `begun` and did not end has to be cleared.
 */
export interface Initialisation {
  readonly uid: string
  readonly state: (typeof states)[number]
}

const states = ['begun', 'initialised', 'done'] as const

/** @returns undefined where nothing was begun, `damaged` where the file says nothing */
export async function readInitialisation(
  paths: Pick<ClusterPaths, 'initialisation'>,
): Promise<Initialisation | 'damaged' | undefined> {
  const noted = await readNote<Initialisation>(paths.initialisation)
  if (noted === undefined || noted === 'damaged') return noted
  return typeof noted.uid === 'string' && states.includes(noted.state) ? noted : 'damaged'
}

export const writeInitialisation = (paths: Pick<ClusterPaths, 'initialisation'>, value: Initialisation) =>
  replaceFile(paths.initialisation, JSON.stringify(value), 0o600)
