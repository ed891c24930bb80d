import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncFolder, syncTree } from '../../../system/files.ts'
import { kubernetesFiles, type ClusterPaths } from '../paths.ts'
import type { FileSum } from './tree.ts'

/** A copy of Kubernetes on this host to which it can go back; `copy.json` in its folder. */
export interface KubernetesCopy {
  /** The version that it is of, and the one for which it was made. */
  readonly from: string
  readonly to: string
  /** Generation with which the change was begun; the name of its folder. */
  readonly generation: number
  /** When etcd was ended for it: what is written to the API later is not in it. Milliseconds since 1970. */
  readonly at: number
  /** Data folder of etcd. */
  readonly etcd: string
  /** Folder of each program, as `current` led to it. */
  readonly programs: Readonly<Record<string, string>>
  /** Digest of each image that Kubernetes itself needs, by its name; of those that containerd had. */
  readonly images: Readonly<Record<string, string>>
  /** Its files: below `files`, each at its path on the host. */
  readonly sums: readonly FileSum[]
}

/** A copy and where it is. */
export interface FoundCopy extends KubernetesCopy {
  readonly folder: string
}

const description = 'copy.json'

/** Folder of the files of a copy. */
export const filesOf = (folder: string) => join(folder, 'files')

export const folderOf = ({ copies }: Pick<ClusterPaths, 'copies'>, generation: number) =>
  join(copies, String(generation))

/** Folder in which a copy is made; only a whole one gets its name. */
export const stagingOf = ({ copies }: Pick<ClusterPaths, 'copies'>, generation: number) =>
  join(copies, `.${generation}.tmp`)

/** The files beside those of etcd that a copy has: the kubelet's, and the notes of the engine. */
export const copiedFiles = (
  paths: Pick<ClusterPaths, 'kubeadmConfig' | 'kubernetesImages' | 'configured'>,
): readonly string[] => [
  ...['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env'].map((name) =>
    join('/var/lib/kubelet', name),
  ),
  ...[paths.kubeadmConfig, paths.kubernetesImages, paths.configured],
]

/** What of the folder of Kubernetes is in no copy: kubeadm keeps the manifests and the data of each upgrade there. */
export const isTemporary = (path: string) => path === join(kubernetesFiles.folder, 'tmp')

/** Whole copies of this host, the newest first. */
export async function listCopies({ copies }: Pick<ClusterPaths, 'copies'>): Promise<readonly FoundCopy[]> {
  const names = await readdir(copies).catch(() => [])
  const found = await Promise.all(
    names.map(async (name) => (/^\d+$/.test(name) ? readCopy(join(copies, name)) : undefined)),
  )
  return found.flatMap((each) => each ?? []).sort((one, other) => other.generation - one.generation)
}

/** @returns undefined where the folder has no copy that can be read */
export async function readCopy(folder: string): Promise<FoundCopy | undefined> {
  try {
    const copy = JSON.parse(await readFile(join(folder, description), 'utf8')) as KubernetesCopy
    const isOne =
      typeof copy.from === 'string' &&
      copy.generation === Number(basename(folder)) &&
      Array.isArray(copy.sums)
    return isOne ? { ...copy, folder } : undefined
  } catch {
    return undefined
  }
}

/** Makes a copy of what is in its staging folder: everything is on the disk before it gets its name. */
export async function finishCopy(paths: Pick<ClusterPaths, 'copies'>, copy: KubernetesCopy): Promise<void> {
  const [staging, folder] = [stagingOf(paths, copy.generation), folderOf(paths, copy.generation)]
  await writeFile(join(staging, description), JSON.stringify(copy), { mode: 0o600 })
  await syncTree(staging)
  await rm(folder, { recursive: true, force: true })
  await rename(staging, folder)
  await syncFolder(dirname(folder))
}

/** Removes all copies but one, and what was left of copies that were not finished. */
export async function removeOtherCopies(
  { copies }: Pick<ClusterPaths, 'copies'>,
  generation: number,
): Promise<void> {
  for (const name of await readdir(copies).catch(() => []))
    if (name !== String(generation)) await rm(join(copies, name), { recursive: true, force: true })
}
