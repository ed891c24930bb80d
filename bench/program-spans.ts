import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Edgehostd } from '../test/e2e/host/edgehostd.ts'
import type { Span } from './own-time.ts'
import { childrenOf } from './usage.ts'

const everyMs = 5

/**
 * Looks every 5 ms which of the programs run below the daemon of a booted host.
 * @param names as in `/proc/<pid>/comm`
 * @returns ends it, and gives when each ran
 */
export async function watchPrograms(
  host: Edgehostd,
  names: readonly string[],
): Promise<() => readonly Span[]> {
  const daemon = pidHere(host.leader, await host.mainPid())
  const running = new Map<number, number>()
  const spans: Span[] = []
  function look(): void {
    const now = Date.now()
    const seen = new Set(below(daemon).filter((pid) => names.includes(nameOf(pid))))
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

const below = (pid: number): readonly number[] => childrenOf(pid).flatMap((child) => [child, ...below(child)])

/** The number that this machine has for a process of a host. */
function pidHere(leader: number, pid: number): number {
  const namespace = namespaceOf(leader)
  const found = readdirSync('/proc')
    .map(Number)
    .filter(Boolean)
    .find((each) => namespaceOf(each) === namespace && innerPid(each) === pid)
  if (found === undefined) throw new Error(`the process ${pid} of the host is not found`)
  return found
}

const namespaceOf = (pid: number) => orEmpty(() => readlinkSync(`/proc/${pid}/ns/pid`))
const innerPid = (pid: number) =>
  Number(/^NSpid:.*\s(\d+)$/m.exec(orEmpty(() => readFileSync(`/proc/${pid}/status`, 'utf8')))?.[1])
const nameOf = (pid: number) => orEmpty(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim())

/** Empty for a process that has ended. */
function orEmpty(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
