import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import { mountOf, parseMountinfo } from '../../system/mountinfo.ts'
import { clusterPaths } from '../engine/paths.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'

/** Result of the probe of a folder. */
export interface FolderProbe {
  readonly folder: string
  readonly mountPoint: string
  readonly fileSystemType: string
  readonly mountOptions: readonly string[]
  readonly canExecute: boolean
  /** Why no overlay can be mounted in it; empty where one can. */
  readonly overlayProblem: string
  /** Why root cannot write there, and so nothing was tried; undefined where it can. */
  readonly writeProblem?: string
}

/**
 * The folders to be tried: the state folder, and those in it that hold programs and containers, where a file system is mounted at them. Pure.
 * @param mountinfo of the host
 */
export function foldersToProbe(mountinfo: string, stateDirectory: string): readonly string[] {
  const { folder, containerd } = clusterPaths(stateDirectory)
  const mounts = parseMountinfo(mountinfo)
  return [
    stateDirectory,
    ...[folder, containerd].filter((each) => mountOf(mounts, each)?.mountPoint === each),
  ]
}

const timeoutMs = 20_000

/** Whether a name in a state folder is a probe's; a killed one leaves it. */
export const isProbe = (name: string): boolean => /^\.probe-[0-9A-Za-z]{8}$/.test(name)

// A mount namespace of its own: mounts go with it, however this ends. The trap of EXIT is for signals, too, as at the time limit. As
// containerd does it, the overlay has two lower folders (snapshots/overlay/overlayutils/check.go); a removed file needs the kernel's mark
// of it.
const script = `
findmnt --noheadings --raw --output TARGET,FSTYPE,OPTIONS --target "$1" | tail -n 1
probe=$(mktemp -d "$1/.probe-XXXXXXXX")
trap 'umount "$probe/merged" 2> /dev/null || :; rm -rf "$probe"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$probe/one" "$probe/two" "$probe/upper" "$probe/work" "$probe/merged"
printf '#!/bin/sh\\nexit 0\\n' > "$probe/run"; chmod 700 "$probe/run"
if "$probe/run" 2> /dev/null; then echo executes; else echo refuses; fi
: > "$probe/one/file"
if said=$(mount -t overlay overlay -o "lowerdir=$probe/two:$probe/one,upperdir=$probe/upper,workdir=$probe/work" "$probe/merged" 2>&1) &&
  said=$(rm "$probe/merged/file" 2>&1) && said=$(mkdir "$probe/merged/made" 2>&1)
then echo; else printf '%s\\n' "$said" | head -n 1; fi
`

/**
 * Tries the work of a cluster in a folder: runs a file, and mounts an overlay as containerd does. Nothing of it stays.
 * @param privileged runs programs outside of the sandbox of the daemon
 * @returns undefined where that cannot be tried, as without the rights for a mount
 */
export async function probeFolder(
  privileged: CommandRunner,
  folder: string,
): Promise<FolderProbe | undefined> {
  const answer = await privileged
    .run('unshare', ['--mount', 'sh', '-euc', script, 'sh', folder], { timeoutMs })
    .catch((error: unknown) => {
      if (error instanceof CommandFailed) return undefined
      throw error
    })
  const [mount = '', executes, overlayProblem = ''] = answer?.stdout.split('\n') ?? []
  // Without the rights for a mount, unshare does not begin the script.
  if (!answer || mount === '') return undefined
  const [mountPoint = '', fileSystemType = '', mountOptions = ''] = mount.split(' ')
  const probe = {
    folder,
    mountPoint: plainPath(mountPoint),
    fileSystemType,
    mountOptions: mountOptions.split(','),
    canExecute: executes === 'executes',
    overlayProblem: overlayProblem.trim(),
  }
  if (answer.exitCode === 0) return probe
  const writeProblem = answer.stderr.trim().split('\n')[0] ?? ''
  return writeProblem === '' ? undefined : { ...probe, writeProblem }
}

/** findmnt(8) writes blanks and other characters of its raw output as `\x20`. */
const plainPath = (text: string) =>
  text.replace(/\\x([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)))

/** Judges a folder that holds the programs and the containers of a cluster. Pure. */
export function judgeFolder(probe: FolderProbe | undefined): readonly PreflightProblem[] {
  if (!probe) return []
  const { folder, mountPoint, fileSystemType, mountOptions, canExecute, overlayProblem, writeProblem } = probe
  const place = `the file system ${fileSystemType} that is mounted at ${mountPoint}`
  const problem = (message: string): PreflightProblem => ({
    code: 'FileSystemUnusable',
    severity: 'error',
    message,
  })
  if (writeProblem !== undefined)
    return [
      problem(
        `root cannot write in ${folder}, on ${place} (${writeProblem}): an NFS server may map root to nobody, and a FUSE file system may admit one user only; remove that restriction, or move the state of edgehostd to another file system`,
      ),
    ]
  const isNoexec = mountOptions.includes('noexec')
  return [
    ...(canExecute
      ? []
      : [
          problem(
            isNoexec
              ? `no program can be run in ${folder}: ${place} has the option noexec; take it away: mount -o remount,exec ${mountPoint}, and in /etc/fstab; then restart edgehostd`
              : `no program can be run in ${folder}, on ${place} (options ${mountOptions.join(',')}); move the state of edgehostd to another file system`,
          ),
        ]),
    ...(overlayProblem === ''
      ? []
      : [
          problem(
            `containers cannot be made in ${folder}: ${place} takes no overlay (${overlayProblem}); mount a file system such as ext4 or xfs at ${folder}`,
          ),
        ]),
  ]
}
