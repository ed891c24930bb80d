import { posix } from 'node:path'
import type { CommandRunner } from '../../system/runner.ts'
import { ask, type Answer } from '../ask.ts'
import type { HostFiles } from '../files.ts'
import {
  ntpOf,
  parseTimeSources,
  unique,
  words,
  type Ntp,
  type NtpReading,
  type TimeSource,
} from './time-source.ts'

// Debian's path, and that of the other distributions.
const configurationFiles = ['/etc/chrony/chrony.conf', '/etc/chrony.conf']
const timeoutMs = 3_000
// Stops at a file that includes itself.
const maxDepth = 5

/** Asks a running chronyd, which also knows sources that no file names; only its files have the poll figures. */
export async function readChrony(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  const configured = (await readChronyConfiguration(files)) ?? ntpOf([])
  const answer = await askForSources(runner)
  if ('problem' in answer) return { ntp: configured, problems: [answer.problem] }
  return { ntp: { ...configured, ntpServers: parseChronySources(answer.stdout) }, problems: [] }
}

/**
 * `-N`: names as they were configured (since chrony 4.0; older versions show addresses, `-n`). `-a`: also sources whose
 * name has no address yet, which are all sources on a host that was never online. In the daemon's sandbox chronyc has no
 * access to chronyd's socket and asks port 323 of this host instead, which allows this query (chronyc(1)).
 */
async function askForSources(runner: CommandRunner): Promise<Answer> {
  const sources = (naming: string) => ask(runner, 'chronyc', [naming, '-c', 'sources', '-a'], timeoutMs)
  const answer = await sources('-N')
  return 'problem' in answer && / option\b/.test(answer.problem) ? sources('-n') : answer
}

/**
 * Parses `chronyc -c sources`: mode (`^` server, `=` peer, `#` reference clock), state, name, and figures.
 * All members of a pool have the name of the pool. With `-n`, a source without an address is shown as `ID#…`.
 */
export function parseChronySources(text: string): string[] {
  const names = text
    .split('\n')
    .map((line) => line.split(','))
    .map(([mode, , name = '']) => (mode === '^' || mode === '=' ? name : ''))
  return unique(names.filter((name) => name !== '' && !name.startsWith('ID#')))
}

/** Reads the sources in chronyd's configuration files; undefined where chronyd is not installed. */
export async function readChronyConfiguration(files: HostFiles): Promise<Ntp | undefined> {
  for (const path of configurationFiles) {
    const text = await files.text(path)
    if (text !== undefined) return ntpOf(await sourcesOf(files, text))
  }
  return undefined
}

/** The sources of a file of chrony.conf(5), then those of the files that it includes. */
async function sourcesOf(files: HostFiles, text: string, depth = 0): Promise<TimeSource[]> {
  const sources = parseTimeSources(text)
  if (depth === maxDepth) return sources
  for (const [, directive, value] of text.matchAll(/^[ \t]*(include|confdir|sourcedir)[ \t]+(.+)$/gim)) {
    for (const path of await filesOf(files, directive?.toLowerCase() ?? '', words(value ?? ''))) {
      sources.push(...(await sourcesOf(files, (await files.text(path)) ?? '', depth + 1)))
    }
  }
  return sources
}

async function filesOf(files: HostFiles, directive: string, places: readonly string[]): Promise<string[]> {
  const paths = new Map<string, string>()
  const patterns =
    directive === 'include'
      ? places.slice(0, 1)
      : places.map((folder) => `${folder}/*${directive === 'confdir' ? '.conf' : '.sources'}`)
  for (const pattern of patterns) {
    const { dir, base } = posix.parse(pattern)
    for (const name of await files.names(dir)) {
      // Of files with the same name, the one in the first folder wins.
      if (posix.matchesGlob(name, base) && !paths.has(name)) paths.set(name, `${dir}/${name}`)
    }
  }
  return [...paths].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path)
}
