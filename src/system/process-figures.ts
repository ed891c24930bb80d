import { readdir, readFile } from 'node:fs/promises'

/** Figures of this process, as the kernel counts them. */
export interface ProcessFigures {
  /** User and system, seconds. */
  readonly cpuSeconds: number
  readonly residentBytes: number
  /** Seconds since 1970. */
  readonly startedAt: number
  readonly openFiles: number | undefined
  /** Soft limit; undefined without a limit. */
  readonly maximumFiles: number | undefined
}

/** Reads proc(5); a figure that cannot be read is left out. */
export async function readProcessFigures(proc = '/proc/self'): Promise<ProcessFigures> {
  const { user, system } = process.cpuUsage()
  const files = await readdir(`${proc}/fd`).catch(() => undefined)
  const limits = await readFile(`${proc}/limits`, 'utf8').catch(() => '')
  const maximum = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
    startedAt: performance.timeOrigin / 1_000,
    // Without the descriptor that readdir itself has open.
    openFiles: files && files.length - 1,
    maximumFiles: maximum === undefined ? undefined : Number(maximum),
  }
}
