import { readdirSync, readFileSync } from 'node:fs'

export interface SleepWatchOptions {
  readonly pid: number
  /** A program that used no processor for so long is taken to sleep. */
  readonly quietMs: number
  readonly onSleep: () => void
}

/**
 * Looks at a program and what it has started, until all of it only sleeps or has ended.
 * @returns how to stop looking
 */
export function watchForSleep({ pid, quietMs, onSleep }: SleepWatchOptions): () => void {
  // The time that counts here is that of the kernel, so each look has to lie within it.
  const looks = 2
  let last: string | undefined
  let quiet = 0
  const timer = setInterval(() => {
    const now = activityOf(pid)
    quiet = now !== undefined && now === last ? quiet + 1 : 0
    last = now
    if (quiet < looks) return
    clearInterval(timer)
    onSleep()
  }, quietMs / looks)
  timer.unref()
  return () => clearInterval(timer)
}

// Sleeping, or ended. One that waits for the disk may be at work in memory that was swapped out.
const restful = new Set(['S', 'Z', 'X'])

/**
 * What a program and its children have used of the processors, as a text that stays the same while all of them sleep;
 * undefined while one of them runs, waits for a processor, or cannot be looked at. proc_pid_stat(5).
 */
function activityOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name stands in parentheses and may hold everything, these included.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = ''] = fields
    if (!restful.has(state)) return undefined
    // utime, stime, and those of children that have ended.
    const own = `${pid}:${fields.slice(11, 15).join()}`
    const parts = childrenOf(pid).map(activityOf)
    return parts.includes(undefined) ? undefined : [own, ...parts].join(' ')
  } catch {
    return undefined
  }
}

/** Children of all threads. Where the kernel is built without this list, nothing is known to sleep. */
function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
}
