import type { Output } from '../ctl/output.ts'
import { type MaybeTerminal, createStatusLine } from '../program/status-line.ts'
import { plural, oneLine, wrap, type Paper } from '../ctl/layout.ts'
import type { Problem } from '../definition/definition.ts'

/** Output and cleanup that the commands of `edgehostctl definition` share. */
export interface CommandContext {
  readonly output: Output
  /** Terminal for the progress. */
  readonly errors: MaybeTerminal
  /** Registers a file or folder that is removed when a signal ends the process. */
  removeOnSignal(path: string): void
}

/** Counts and size of a definition archive. */
interface Contents {
  readonly profiles: number
  readonly packs: number
  readonly members: number
  /** Bytes of all members, unpacked. */
  readonly bytes: number
}

/** `1 profile, 3 packs, 6 files of 1.2 MB`. */
export const describeContents = ({ profiles, packs, members, bytes }: Contents): string =>
  `${plural(profiles, 'profile')}, ${plural(packs, 'pack')}, ${plural(members, 'file')} of ${megabytes(bytes)}`

/** Decimal megabytes or kilobytes, `12.3 MB`. */
export const megabytes = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`

/** Problems in the format of a compiler: place, severity, code, message. */
export function renderProblems(problems: readonly Problem[], paper: Paper): string {
  return problems
    .map(({ place, severity, code, message }) => {
      const line = oneLine(`${place}: ${severity} ${code}: ${message}`)
      return Number.isFinite(paper.columns) ? `${wrap(line, paper.columns - 2).join('\n  ')}\n` : `${line}\n`
    })
    .join('')
}

/** Errors first, then by place. */
export const sortProblems = (problems: readonly Problem[]): Problem[] =>
  [...problems].sort((a, b) => rank(a) - rank(b) || compare(a.place, b.place))

const rank = ({ severity }: Problem) => (severity === 'error' ? 0 : 1)
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Shows the progress of long work, on a terminal only and not in the first second. */
export interface Progress {
  /** @param done bytes. @param total bytes; 0 if unknown */
  report(done: number, total: number): void
  /** Removes the line. */
  clear(): void
}

const quietMs = 1_000
const pauseMs = 100

/** @param what the word before the figures, for example `packing` */
export function createProgress(
  what: string,
  stream: MaybeTerminal,
  now: () => number = () => performance.now(),
): Progress {
  const line = createStatusLine(stream)
  let nextAt = now() + quietMs
  return {
    report(done, total) {
      if (now() < nextAt) return
      nextAt = now() + pauseMs
      const share = total > 0 ? ` of ${megabytes(total)}, ${Math.floor((100 * done) / total)} %` : ''
      line.draw(`${what} ${megabytes(done)}${share}`)
    },
    clear: line.clear,
  }
}
