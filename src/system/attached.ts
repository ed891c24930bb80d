// Programs of the user that a command line starts, as kubectl: with the user's own environment and PATH. The daemon starts its programs through
// `runner.ts`.

import { execFile, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { constants as numbers, tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** The file of a program that the PATH of an environment leads to; undefined where there is none. */
export function findInPath(name: string, { PATH = '' }: Environment): string | undefined {
  return PATH.split(':')
    .filter(isAbsolute)
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

/** Whether a path is a file that this process may execute. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

interface AskOptions {
  readonly environment: Environment
  /** It is killed after this. */
  readonly timeoutMs: number
}

const mostOutputBytes = 1_048_576

/** The standard output of a program that gets no input; undefined where it fails, is not started or does not end in time. */
export function askProgram(
  program: string,
  args: readonly string[],
  { environment, timeoutMs }: AskOptions,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const options = {
    env: environment,
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: mostOutputBytes,
  } as const
  const child = execFile(program, args, options, (error, stdout) => resolve(error ? undefined : stdout))
  child.stdin?.on('error', () => undefined).end()
  return promise
}

interface AttachedOptions {
  readonly environment: Environment
  /** A file for the program, and the variable of its environment that names it. */
  readonly file: { readonly variable: string; readonly content: string }
  /** Whether there is a terminal, whose keys send SIGINT and SIGQUIT to the program too. */
  readonly hasTerminal: boolean
}

const forwarded = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a program in the place of this one: it has the terminal and the standard streams, and gets the signals. The file has mode 0600 in a folder
 * with mode 0700, and is removed when the program has ended; only SIGKILL leaves it.
 * @returns its exit status; of a program that a signal has ended 128 and the number of the signal, as a shell says it
 * @throws the system's error where the program is not started or the file not written
 */
export async function runAttached(
  program: string,
  args: readonly string[],
  { environment, file, hasTerminal }: AttachedOptions,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let forward: (signal: NodeJS.Signals) => void = () => undefined
  const onSignal = (signal: NodeJS.Signals) => {
    const isOfTerminal = hasTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT')
    if (!isOfTerminal) forward(signal)
  }
  // Before there is a file: from here on no signal but SIGKILL ends this process.
  for (const signal of forwarded) process.on(signal, onSignal)
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(tmpdir(), 'edgehostctl-'))
    const path = join(folder, 'config')
    writeFileSync(path, file.content, { mode: 0o600, flag: 'wx' })
    const child = spawn(program, args, { stdio: 'inherit', env: { ...environment, [file.variable]: path } })
    forward = (signal) => void child.kill(signal)
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? 128 + numbers.signals[signal ?? 'SIGKILL']))
    return await promise
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    for (const signal of forwarded) process.off(signal, onSignal)
  }
}
