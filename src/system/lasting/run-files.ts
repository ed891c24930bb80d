import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a run is to do; `order.json` in its folder. */
export interface RunOrder {
  readonly program: string
  readonly args: readonly string[]
  /** Beside the fixed environment. */
  readonly environment: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Of the boot in which it was started. */
  readonly bootId: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
}

/** How a command ended, by itself or because it was told to. */
export type CommandEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'killed'; readonly signal: string }
  /** It could not be started, for example for `ENOENT`. */
  | { readonly kind: 'not-started'; readonly reason: string }

/** `exit` in the folder of a run. */
export type RunExit = CommandEnd & {
  /** Milliseconds since 1970. */
  readonly endedAt: number
  /** It was told to end, by `stop` or because its time was up. */
  readonly endedBy?: 'stop' | 'time'
  /** Bytes of its output that are not in the file, since that is full or the disk is; its last lines are there. */
  readonly leftOutBytes: number
}

/** The files of a run, all in one folder. */
export interface RunFiles {
  readonly folder: string
  /** What the command said, both outputs line by line; only appended to. */
  readonly output: string
  /** Renamed into place when the command has ended and its output is complete. */
  readonly exit: string
  /** What becomes `exit`, with its place on the disk: a full disk must not hide how a command ended. */
  readonly reserve: string
  readonly order: string
  /** Standard input of the command; removed by the keeper before the command reads it. */
  readonly input: string
  /** Holds the process id of the keeper once it has begun, and blanks until then; locked in a session, flock(1). */
  readonly lock: string
}

/** Most bytes of the output of a run, the lines about what was left out and the last ones included. */
export const maxOutputBytes = 67_108_864

/** Bytes of `exit` and `lock` that are taken on the disk at the start. */
export const reservedBytes = 4_096

/** Where the files of a run stand. */
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

/** Content of a file that is written over in its place: JSON and blanks. */
export const reserved = (value?: unknown) =>
  `${(value === undefined ? '' : JSON.stringify(value)).padEnd(reservedBytes - 1)}\n`

/** Reads JSON; undefined where the file is missing or not whole. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
