import { execFileSync } from 'node:child_process'

// Used without git and without SOURCE_DATE_EPOCH. It is fixed, so that two builds have the same bytes.
const fallbackSeconds = Date.UTC(2026, 10, 21) / 1000

/**
 * The date of a build, in seconds since 1970: SOURCE_DATE_EPOCH (reproducible-builds.org), otherwise the commit time
 * of HEAD, otherwise a fixed date. Never the clock.
 */
export function readBuildDate(): number {
  const epoch = process.env.SOURCE_DATE_EPOCH
  if (epoch !== undefined) {
    if (!/^\d{1,12}$/.test(epoch)) throw new Error(`SOURCE_DATE_EPOCH is not a number of seconds: ${epoch}`)
    return Number(epoch)
  }
  try {
    const args = ['-C', `${import.meta.dirname}/..`, 'log', '-1', '--format=%ct']
    return Number(execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  } catch {
    return fallbackSeconds
  }
}
