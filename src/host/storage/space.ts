import { isUtf8 } from 'node:buffer'
import type { Logger } from '../../system/log.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { createFact, type Fact } from '../fact.ts'
import { bytesToText } from './mounts.ts'

/** How full a file system is, in bytes. */
export interface Space {
  /** f_blocks of statfs(2). */
  readonly total: number
  /** f_blocks − f_bfree. */
  readonly used: number
  /** f_bavail: what a user can still write. */
  readonly free: number
}

/** The space of file systems by mount point, which has one character for each byte of its name. */
export interface Spaces {
  of(mountPoint: string): Space | undefined
  /** Reads the space at these mount points, or only at those that were not read before; removes all others. */
  refresh(mountPoints: readonly string[], which: 'all' | 'new'): Promise<void>
  /** Why the space of file systems cannot be read, one line each. */
  problems(): readonly string[]
}

export interface SpacesOptions {
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
