import { execa } from 'execa'

/** How a program of the test machine ended. */
export interface Ended {
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** Standard input; without it the program reads end-of-file. */
  readonly input?: string
  readonly timeoutMs?: number
  /** The whole environment; nothing is inherited. */
  readonly env?: Readonly<Record<string, string>>
}

export const systemPath = '/usr/sbin:/usr/bin:/sbin:/bin'

/** A command line as run by a user who is in no group but their own. */
export const asUser = (user: string, args: readonly string[]): string[] => [
  ...['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups'],
  ...args,
]

/** Runs a program in a clean environment; a non-zero exit is data. */
export async function run(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  const { input = '', timeoutMs = 120_000, env = {} } = options
  const result = await execa(program, args, {
    reject: false,
    stripFinalNewline: false,
    extendEnv: false,
    env: { PATH: systemPath, LC_ALL: 'C', HOME: '/root', ...env },
    input,
    timeout: timeoutMs,
    maxBuffer: 100_000_000,
  })
  if (result.timedOut) throw new Error(`${program} ${args.join(' ')}: longer than ${timeoutMs} ms`)
  if (result.exitCode === undefined && result.signal === undefined)
    throw new Error(`${program}: ${result.shortMessage}`)
  return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr }
}

/** Runs a program that has to succeed; returns its standard output. */
export async function output(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { exitCode, stdout, stderr } = await run(program, args, options)
  if (exitCode !== 0)
    throw new Error(`${program} ${args.join(' ')}: exit ${exitCode ?? 'by signal'}\n${stderr}\n${stdout}`)
  return stdout
}
