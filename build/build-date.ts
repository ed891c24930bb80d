import { execFileSync } from 'node:child_process'

// For a tree that is neither in git nor told: still a fixed moment, so that two builds are the same.
const fallbackSeconds = Date.UTC(2026, 10, 21) / 1000

/**
 * The moment a build counts as made, in seconds: SOURCE_DATE_EPOCH (reproducible-builds.org), else the commit time
 * of HEAD, else a fixed date. Never the clock.
 */
export function readBuildDate(): number {
  const told = process.env.SOURCE_DATE_EPOCH
  if (told !== undefined) {
    if (!/^\d{1,12}$/.test(told)) throw new Error(`SOURCE_DATE_EPOCH is not a number of seconds: ${told}`)
    return Number(told)
  }
  try {
    const args = ['-C', `${import.meta.dirname}/..`, 'log', '-1', '--format=%ct']
    return Number(execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  } catch {
    return fallbackSeconds
  }
}
