import { join } from 'node:path'

/** Environment of keepers: units of systemd, or sessions of their own. */
export interface Place {
  /**
   * Starts the keeper of a run, independent of this process: the keeper outlives it.
   * @returns once the keeper is started; its command is not started yet
   * @throws Error why the keeper was not started, for example because one of this name runs
   */
  launch(run: PlacedRun): Promise<void>
  /** Process id of the keeper, 0 where it is not known yet; undefined where no keeper runs. */
  findKeeper(run: Pick<PlacedRun, 'name' | 'lock'>): Promise<number | undefined>
  /** The id of the present boot of the host, which is different after each boot: its end is the end of every keeper. */
  bootId(): Promise<string>
  /** Whether the host is shutting down. */
  isEnding(): Promise<boolean>
  /** Advice for an operator on why a keeper did not start or end. */
  advice(name: string): string
}

interface PlacedRun {
  readonly name: string
  /** Path of the run's lock file. */
  readonly lock: string
  /** The program of the keeper and its arguments. */
  readonly command: readonly string[]
  /** Time limit of the command; the keeper ends it then. */
  readonly timeoutMs: number
}

/** The command of a run; `order.json` in its folder. */
export interface RunOrder {
  readonly program: string
  readonly args: readonly string[]
  /** Added to the fixed environment. */
  readonly environment: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** The boot in which the run was started. */
  readonly bootId: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
}

/** End of a command, by itself or by a signal of its keeper. */
export type CommandEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'killed'; readonly signal: string }
  /** The command could not be started, for example `ENOENT`. */
  | { readonly kind: 'not-started'; readonly reason: string }

/** `exit` in the folder of a run. */
export type RunExit = CommandEnd & {
  /** Milliseconds since 1970. */
  readonly endedAt: number
  /** The keeper ended it: for `stop`, or at its time limit. */
  readonly endedBy?: 'stop' | 'time'
  /** Bytes of its output that are not in the file, since the file or the disk was full; its last lines are appended. */
  readonly leftOutBytes: number
}

/** The files of a run, all in one folder. */
export interface RunFiles {
  readonly folder: string
  /** Standard output and standard error of the command, line by line; only appended to. */
  readonly output: string
  /** Renamed into place when the command has ended and its output is complete. */
  readonly exit: string
  /** Renamed to `exit`. Its space on the disk is allocated at the start, so a full disk cannot hide the end of a command. */
  readonly reserve: string
  readonly order: string
  /** Standard input of the command; removed by the keeper before the command reads it. */
  readonly input: string
  /** Holds the process id of the keeper once it has started, and blanks until then; locked, flock(1), where keepers run in sessions. */
  readonly lock: string
}

/** Most bytes of the output of a run, including the line about the omitted part and the last lines. */
export const maxOutputBytes = 67_108_864

/** Bytes that are allocated on the disk at the start, for `exit` and for `lock`. */
const reservedBytes = 4_096

/** Paths of the files of a run. */
export function runFiles(folder: string): RunFiles {
  const file = (name: string) => join(folder, name)
  return {
    folder,
    output: file('output'),
    exit: file('exit'),
    reserve: file('exit.reserved'),
    order: file('order.json'),
    input: file('input'),
    lock: file('lock'),
  }
}

/** Content of a file that is overwritten in place: JSON, padded with blanks. */
export const reserved = (value?: unknown) =>
  `${(value === undefined ? '' : JSON.stringify(value)).padEnd(reservedBytes - 1)}\n`
