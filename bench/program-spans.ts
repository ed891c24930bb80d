import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Span } from './own-time.ts'

const everyMs = 5

/**
 * Looks every 5 ms which of the programs run as children of the daemon of a booted host.
 * @param leader process of the host, as this machine numbers it
 * @param names as in `/proc/<pid>/comm`
 * @returns ends it, and gives when each ran
 */
export function watchPrograms(leader: number, names: readonly string[]): () => readonly Span[] {
  const folder = `/proc/${leader}/root/sys/fs/cgroup/system.slice/edgehostd.service`
  const processes = join(folder, 'cgroup.procs')
  // Not there: nothing would be seen.
  readFileSync(processes)
  const running = new Map<number, number>()
  const spans: Span[] = []
  function look(): void {
    const now = Date.now()
    const pids = readFileSync(processes, 'utf8').split('\n').filter(Boolean).map(Number)
    const seen = new Set(pids.filter((pid) => names.includes(nameOf(pid))))
    for (const pid of seen) if (!running.has(pid)) running.set(pid, now)
    for (const [pid, from] of running)
      if (!seen.has(pid)) {
        spans.push({ from, to: now })
        running.delete(pid)
      }
  }
  const timer = setInterval(look, everyMs)
  return () => {
    clearInterval(timer)
    look()
    return [...spans, ...[...running.values()].map((from) => ({ from, to: Date.now() }))]
  }
}

/** Empty for a process that has ended. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}
