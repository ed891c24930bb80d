import { CommandFailed, type CommandRunner, type RunOptions } from '../system/runner.ts'

const commandMs = 30_000

/** The output of a program. @throws Error where it fails */
export async function runWhole(
  runner: CommandRunner,
  program: string,
  args: readonly string[],
  options: Partial<Pick<RunOptions, 'timeoutMs' | 'maxOutputBytes'>> = {},
): Promise<string> {
  const { exitCode, stdout, stderr } = await runner.run(program, args, { timeoutMs: commandMs, ...options })
  if (exitCode !== 0)
    throw new Error(stderr.trim().split('\n')[0] || `the program ended with ${exitCode ?? 'a signal'}`)
  return stdout
}

interface JournalOrder {
  readonly units: readonly string[]
  /** Most lines; the second number is taken where the first has too many bytes. */
  readonly lines: readonly [many: number, few?: number]
  readonly maxOutputBytes?: number
  /** Further options of journalctl. */
  readonly args?: readonly string[]
}

/** The last lines of units in the journal. @throws Error where it cannot be read */
export async function readJournal(
  runner: CommandRunner,
  { units, lines: [many, few], maxOutputBytes = 1_048_576, args = [] }: JournalOrder,
): Promise<string> {
  const read = (lines: number) =>
    runWhole(
      runner,
      'journalctl',
      [
        ...['--no-pager', '--quiet', '--output=short-iso-precise', `--lines=${lines}`, ...args],
        ...units.map((unit) => `--unit=${unit}`),
      ],
      { maxOutputBytes },
    )
  try {
    return await read(many)
  } catch (error) {
    if (few === undefined || !(error instanceof CommandFailed) || error.reason !== 'output-too-large')
      throw error
    return read(few)
  }
}
