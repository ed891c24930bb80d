import { kernelTableBytes, type HostFiles } from '../files.ts'

/** One line of mountinfo, unescaped. */
export interface Mount {
  /** `major:minor` of the file system. */
  readonly device: string
  /** The folder of that file system which is mounted; `/` is all of it. */
  readonly root: string
  /** A character for each byte, as the kernel has it: a name of a folder need not be UTF-8. `bytesToText` shows it. */
  readonly mountPoint: string
  readonly fileSystemType: string
  /** What was mounted, for example `/dev/sda1`; free text. */
  readonly source: string
  /** Those of the file system, with commas between them, still escaped. */
  readonly options: string
}

/**
 * The mounts that an operator would call a file system of this host and that may live on a disk. From mountinfo of
 * PID 1, which has the host's even inside the sandbox of our unit; where that process is hidden from us (hidepid in
 * proc(5)), our own must do.
 */
export async function readMounts(files: HostFiles): Promise<readonly Mount[]> {
  const read = (path: string) => files.text(path, kernelTableBytes, 'latin1')
  const text = (await read('/proc/1/mountinfo')) || (await read('/proc/self/mountinfo'))
  if (!text) throw new Error('neither /proc/1/mountinfo nor /proc/self/mountinfo can be read')
  return hostMounts(parseMountinfo(text)).filter(mayLiveOnDisk)
}

/** File systems without a device have a number of major 0, btrfs among them: it has several devices. */
function mayLiveOnDisk({ device, fileSystemType }: Mount): boolean {
  return !device.startsWith('0:') || fileSystemType === 'btrfs'
}

// Fields after the mount options are optional and end with a lone hyphen.
const line = /^\S+ \S+ (\S+) (\S+) (\S+) .*? - (\S+) (\S*) ?(\S*)$/gm

/** Bytes as UTF-8; U+FFFD stands for bytes that are not UTF-8. */
export const bytesToText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()

/** Parses proc_pid_mountinfo(5), read as Latin-1. A node of a cluster has hundreds of lines: nothing is made that has no reader. */
export function parseMountinfo(text: string): readonly Mount[] {
  return Array.from(
    text.matchAll(line),
    ([, device = '', root = '', mountPoint = '', fileSystemType = '', source = '', options = '']) => ({
      device,
      root: unescapeOctal(root),
      mountPoint: unescapeOctal(mountPoint),
      fileSystemType,
      source: bytesToText(unescapeOctal(source)),
      options,
    }),
  )
}

/** Space, tab, newline, backslash and hash come as three octal digits. */
function unescapeOctal(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)))
}

// Volumes of pods and layers of containers; a partition mounted on /var/lib/kubelet itself is the host's.
const podFolders =
  /^\/(var\/lib\/kubelet\/(pods|plugins)|var\/lib\/(docker|containers|containerd)\/.+|run\/(containerd|k3s|docker|netns)|var\/lib\/rancher\/k3s\/agent)\//

/**
 * Those mounts that an operator would call a file system of this host, each once: no bind mounts, no pod's
 * volumes, nothing that lies hidden under a later mount.
 */
export function hostMounts(mounts: readonly Mount[]): readonly Mount[] {
  const visible = new Map(mounts.map((mount) => [mount.mountPoint, mount]))
  const once = new Map<string, Mount>()
  for (const mount of visible.values()) {
    if (!isWhole(mount) || podFolders.test(mount.mountPoint) || mount.mountPoint.endsWith('//deleted'))
      continue
    const key = `${mount.device} ${mount.root}`
    if (!once.has(key)) once.set(key, mount)
  }
  return [...once.values()].sort((a, b) => (a.mountPoint < b.mountPoint ? -1 : 1))
}

/** A bind mount shows a folder; a btrfs subvolume is mounted by its path and says so in `subvol=`. */
function isWhole({ root, fileSystemType, options }: Mount): boolean {
  return (
    root === '/' ||
    (fileSystemType === 'btrfs' && options.split(',').map(unescapeOctal).includes(`subvol=${root}`))
  )
}
