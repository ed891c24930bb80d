import { readdirSync, readFileSync } from 'node:fs'

export interface SleepWatchOptions {
  readonly pid: number
  /** A program that used no processor for this long counts as sleeping. */
  readonly quietMs: number
  readonly onSleep: () => void
}

/**
 * Watches a program and its children until all of them sleep or have ended.
 * @returns a function that stops the watch
 */
export function watchForSleep({ pid, quietMs, onSleep }: SleepWatchOptions): () => void {
  // All readings have to fall within the quiet time, so they are taken at fractions of it.
  const readings = 2
  let last: string | undefined
  let quiet = 0
  const timer = setInterval(() => {
    const now = activityOf(pid)
    quiet = now !== undefined && now === last ? quiet + 1 : 0
    last = now
    if (quiet < readings) return
    clearInterval(timer)
    onSleep()
  }, quietMs / readings)
  timer.unref()
  return () => clearInterval(timer)
}

// Sleeping, or ended. Not D: a process that waits for the disk may be working in memory that was swapped out.
const restful = new Set(['S', 'Z', 'X'])

/**
 * The processor time that a program and its children have used, as a text that stays the same while all of them sleep;
 * undefined while one of them runs, waits for a processor, or cannot be read. proc_pid_stat(5).
 */
function activityOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name is in parentheses and may contain any character, parentheses included.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = ''] = fields
    if (!restful.has(state)) return undefined
    // utime, stime, cutime and cstime: children that have ended count too.
    const own = `${pid}:${fields.slice(11, 15).join()}`
    const parts = childrenOf(pid).map(activityOf)
    return parts.includes(undefined) ? undefined : [own, ...parts].join(' ')
  } catch {
    return undefined
  }
}

/** Children of all threads. Throws on a kernel that is built without this list; the program then never counts as sleeping. */
function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
}
