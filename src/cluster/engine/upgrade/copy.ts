import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import {
  chmod,
  copyFile,
  lchown,
  lstat,
  mkdir,
  readdir,
  readlink,
  symlink,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises'
import { join, basename, dirname } from 'node:path'
import { syncFolder, syncTree } from '../../../system/files.ts'
import { kubernetesFiles, type ClusterPaths } from '../paths.ts'

/** A file of a copied tree. */
interface FileSum {
  /** Relative to the root of the tree. */
  readonly path: string
  readonly bytes: number
  /** SHA-256, hex; of a link, of its target. */
  readonly sha256: string
}

/**
 * Copies a file, a link or a folder with its modes and owners. Blocks are shared where the file system can do that. Sockets and pipes are left out.
 * Nothing is synced. @param isLeftOut of a path below `from`
 */
export async function copyTree(
  from: string,
  to: string,
  isLeftOut: (path: string) => boolean = () => false,
): Promise<void> {
  const found = await lstat(from)
  if (found.isSymbolicLink()) await symlink(await readlink(from), to)
  else if (found.isFile()) await copyFile(from, to, constants.COPYFILE_FICLONE)
  else if (found.isDirectory()) {
    await mkdir(to, { recursive: true, mode: 0o700 })
    for (const name of await readdir(from)) {
      const path = join(from, name)
      if (!isLeftOut(path)) await copyTree(path, join(to, name), isLeftOut)
    }
  } else return
  await lchown(to, found.uid, found.gid)
  if (!found.isSymbolicLink()) await chmod(to, found.mode & 0o7777)
}

/** The files and links below a folder, in the order of their paths, with their sums. */
export async function sumsOf(root: string, below = ''): Promise<readonly FileSum[]> {
  const sums: FileSum[] = []
  for (const name of (await readdir(join(root, below))).sort()) {
    const path = join(below, name)
    const found = await lstat(join(root, path))
    if (found.isDirectory()) sums.push(...(await sumsOf(root, path)))
    else if (found.isSymbolicLink())
      sums.push({
        path,
        bytes: 0,
        sha256: sha256()
          .update(await readlink(join(root, path)))
          .digest('hex'),
      })
    else if (found.isFile()) sums.push({ path, bytes: found.size, sha256: await sumOfFile(join(root, path)) })
  }
  return sums
}

/** First difference from the sums: a sentence for operators; undefined for none. */
export async function damageOf(root: string, sums: readonly FileSum[]): Promise<string | undefined> {
  const present = new Map((await sumsOf(root)).map((each) => [each.path, each]))
  for (const { path, bytes, sha256: sum } of sums) {
    const found = present.get(path)
    if (!found) return `${path} is missing`
    if (found.bytes !== bytes) return `${path} has ${found.bytes} bytes instead of ${bytes}`
    if (found.sha256 !== sum) return `${path} has another content`
    present.delete(path)
  }
  const [more] = present.keys()
  return more === undefined ? undefined : `${more} was added`
}

/** Bytes of all files below a folder; 0 where it is not there. */
export async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const sizes = await Promise.all(
    entries.map(async (entry) =>
      entry.isFile() ? (await lstat(join(entry.parentPath, entry.name)).catch(() => ({ size: 0 }))).size : 0,
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

const sha256 = () => createHash('sha256')

async function sumOfFile(path: string): Promise<string> {
  const hash = sha256()
  for await (const chunk of createReadStream(path, { highWaterMark: 1_048_576 }) as AsyncIterable<Buffer>)
    hash.update(chunk)
  return hash.digest('hex')
}

/** A copy of Kubernetes on this host to which it can go back; `copy.json` in its folder. */
export interface KubernetesCopy {
  /** Its version, and the version for which it was made. */
  readonly from: string
  readonly to: string
  /** Generation that started the change; the name of its folder. */
  readonly generation: number
  /** Time at which etcd was ended for it: later writes to the API are not in it. Milliseconds since 1970. */
  readonly at: number
  /** Data folder of etcd. */
  readonly etcd: string
  /** Folder of each program, as `current` led to it. */
  readonly programs: Readonly<Record<string, string>>
  /** Digest of each image that Kubernetes itself needs, by its name; of images that containerd had. */
  readonly images: Readonly<Record<string, string>>
  /** Its files: below `files`, each at its path on the host. */
  readonly sums: readonly FileSum[]
}

/** A copy and its folder. */
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

/** The files of a copy beside etcd's: the kubelet's, and the notes of the engine. */
export const copiedFiles = (
  paths: Pick<ClusterPaths, 'kubeadmConfig' | 'kubernetesImages' | 'configured'>,
): readonly string[] => [
  ...['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env'].map((name) =>
    join('/var/lib/kubelet', name),
  ),
  ...[paths.kubeadmConfig, paths.kubernetesImages, paths.configured],
]

/** Part of the folder of Kubernetes that is in no copy: kubeadm keeps the manifests and the data of each upgrade there. */
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

/** Makes a copy of its staging folder: everything is on the disk before it gets its name. */
export async function finishCopy(paths: Pick<ClusterPaths, 'copies'>, copy: KubernetesCopy): Promise<void> {
  const [staging, folder] = [stagingOf(paths, copy.generation), folderOf(paths, copy.generation)]
  await writeFile(join(staging, description), JSON.stringify(copy), { mode: 0o600 })
  await syncTree(staging)
  await rm(folder, { recursive: true, force: true })
  await rename(staging, folder)
  await syncFolder(dirname(folder))
}

/** Removes all copies but one, and leftovers of unfinished copies. */
export async function removeOtherCopies(
  { copies }: Pick<ClusterPaths, 'copies'>,
  generation: number,
): Promise<void> {
  for (const name of await readdir(copies).catch(() => []))
    if (name !== String(generation)) await rm(join(copies, name), { recursive: true, force: true })
}
