import { kernelTableBytes, type HostFiles } from '../files.ts'
import { isUtf8 } from 'node:buffer'
import type { Logger } from '../../system/log.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { createFact, type Fact } from '../fact.ts'
import { mountsToward, mountTree, parseMountinfo, unescapeOctal, type Mount } from '../../system/mountinfo.ts'

/**
 * Reads the mounts that an operator would call a file system of this host and that may be on a disk. They come from
 * mountinfo of PID 1, which lists the host's mounts even inside the sandbox of our unit; where that process is hidden
 * (hidepid in proc(5)), mountinfo of this process is used.
 */
export async function readMounts(files: HostFiles): Promise<readonly Mount[]> {
  const read = (path: string) => files.text(path, kernelTableBytes, 'latin1')
  const text = (await read('/proc/1/mountinfo')) || (await read('/proc/self/mountinfo'))
  if (!text) throw new Error('neither /proc/1/mountinfo nor /proc/self/mountinfo can be read')
  return hostMounts(parseMountinfo(text))
    .filter(mayLiveOnDisk)
    .map((mount) => ({ ...mount, source: bytesToText(mount.source) }))
}

/** File systems without a device have the major number 0. btrfs has it too, since it may have several devices. */
function mayLiveOnDisk({ device, fileSystemType }: Mount): boolean {
  return !device.startsWith('0:') || fileSystemType === 'btrfs'
}

/** Bytes as UTF-8; U+FFFD stands for bytes that are not UTF-8. */
export const bytesToText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()

// Volumes of pods and layers of containers; a partition mounted on /var/lib/kubelet itself is the host's.
const podFolders =
  /^\/(var\/lib\/kubelet\/(pods|plugins)|var\/lib\/(docker|containers|containerd)\/.+|run\/(containerd|k3s|docker|netns)|var\/lib\/rancher\/k3s\/agent)\//

/**
 * The mounts that an operator would call a file system of this host, each once: no bind mounts, no volumes of pods, and
 * no mounts that a later mount hides.
 */
export function hostMounts(mounts: readonly Mount[]): readonly Mount[] {
  const tree = mountTree(mounts)
  const once = new Map<string, Mount>()
  for (const mount of mounts) {
    if (!isWhole(mount) || podFolders.test(mount.mountPoint) || mount.mountPoint.endsWith('//deleted'))
      continue
    if (mountsToward(tree, mount.mountPoint).at(-1) !== mount) continue
    const key = `${mount.device} ${mount.root}`
    if (!once.has(key)) once.set(key, mount)
  }
  return [...once.values()].sort((a, b) => (a.mountPoint < b.mountPoint ? -1 : 1))
}

/** False for a bind mount, which shows a folder of a file system. A btrfs subvolume is mounted by its path, the option `subvol=`. */
function isWhole({ root, fileSystemType, options }: Mount): boolean {
  return (
    root === '/' ||
    (fileSystemType === 'btrfs' && options.split(',').map(unescapeOctal).includes(`subvol=${root}`))
  )
}

/** Space of a file system, in bytes. */
export interface Space {
  /** f_blocks of statfs(2). */
  readonly total: number
  /** f_blocks − f_bfree. */
  readonly used: number
  /** f_bavail: bytes that a user can still write. */
  readonly free: number
}

/** The space of file systems by mount point, which has one character for each byte of its name. */
interface Spaces {
  of(mountPoint: string): Space | undefined
  /** Reads the space at these mount points, or only at those that were not read before; removes all others. */
  refresh(mountPoints: readonly string[], which: 'all' | 'new'): Promise<void>
  /** Why the space of file systems cannot be read, one line each. */
  problems(): readonly string[]
}

interface SpacesOptions {
  readonly runner: CommandRunner
  readonly log: Logger
  /** A file system that takes longer counts as failed. */
  readonly deadlineMs: number
}

// A file system that hangs must not delay the others for long.
const atOnce = 4

/**
 * Reads each file system by a child of its own, stat(1): a file system on a dying disk may never answer, and in this
 * process four of them would block every thread for file I/O. A child that hangs is not waited for, and no second one is
 * started.
 */
export function createSpaces({ runner, log, deadlineMs }: SpacesOptions): Spaces {
  const facts = new Map<string, Fact<Space>>()

  const factOf = (mountPoint: string): Fact<Space> => {
    const known = facts.get(mountPoint)
    if (known) return known
    const read = () => readSpace(runner, mountPoint, deadlineMs)
    const fact = createFact({
      name: `space of ${bytesToText(mountPoint)}`,
      refreshClass: 'minutes',
      read,
      deadlineMs,
      log,
    })
    facts.set(mountPoint, fact)
    return fact
  }

  return {
    of: (mountPoint) => facts.get(mountPoint)?.value(),
    async refresh(mountPoints, which) {
      for (const known of facts.keys()) {
        if (!mountPoints.includes(known)) facts.delete(known)
      }
      const due = mountPoints.filter((mountPoint) => which === 'all' || !facts.has(mountPoint)).map(factOf)
      const next = async (): Promise<void> => {
        for (let fact = due.shift(); fact; fact = due.shift()) await fact.refresh()
      }
      await Promise.all(Array.from({ length: atOnce }, next))
    },
    problems: () =>
      [...facts].flatMap(([mountPoint, fact]) =>
        fact.failures().map((reason) => `${bytesToText(mountPoint)}: ${reason}`),
      ),
  }
}

/** Runs stat(1) of coreutils for block size, blocks, free and available blocks. */
async function readSpace(runner: CommandRunner, mountPoint: string, timeoutMs: number): Promise<Space> {
  const { exitCode, stdout, stderr } = await runner.run(...statOf(mountPoint), { timeoutMs })
  const [blockSize, blocks, free, available] = stdout.trim().split(' ').map(Number)
  if (exitCode !== 0 || blockSize === undefined || blocks === undefined) {
    throw new Error(stderr.trim() || `stat ended with ${exitCode ?? 'a signal'}`)
  }
  if (free === undefined || available === undefined) throw new Error(`stat printed ${stdout}`)
  return { total: blocks * blockSize, used: (blocks - free) * blockSize, free: available * blockSize }
}

/** Node passes arguments as UTF-8, so the shell makes a name that is not UTF-8 from the octal digits of its bytes. */
function statOf(mountPoint: string): [program: string, args: readonly string[]] {
  const args = ['--file-system', '--format=%S %b %f %a', '--']
  const bytes = Buffer.from(mountPoint, 'latin1')
  if (isUtf8(bytes)) return ['stat', [...args, bytes.toString()]]
  const digits = Array.from(bytes, (byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('')
  // A newline at the end would be lost in "$(…)".
  const script = 'name=$(printf %b "$1"; echo /); shift; exec stat "$@" "${name%?}"'
  return ['sh', ['-c', script, 'sh', digits, ...args]]
}
