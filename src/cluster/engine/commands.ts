import { createRunner } from '../../system/runner.ts'
import { StepFailed } from '../step.ts'

const runner = createRunner()
const shortMs = 60_000
// The step of the action has a limit of its own.
const longMs = 3_600_000

export interface CommandOptions {
  readonly timeoutMs?: number
}

/** Programs of the host, as an action runs them: to their end, and a failure has a reason for operators. */
export const commands = {
  /** @returns its standard output @throws StepFailed with its error output */
  async run(
    program: string,
    args: readonly string[],
    { timeoutMs = shortMs }: CommandOptions = {},
  ): Promise<string> {
    const result = await runner.run(program, args, { timeoutMs }).catch((error: unknown) => {
      throw new StepFailed((error as Error).message)
    })
    if (result.exitCode === 0) return result.stdout
    throw new StepFailed(
      `${[program, ...args].join(' ')} failed: ${result.stderr.trim() || result.stdout.trim()}`,
    )
  },
  /** @returns why it failed; undefined if it did not */
  attempt: (
    program: string,
    args: readonly string[],
    options?: CommandOptions,
  ): Promise<string | undefined> =>
    commands.run(program, args, options).then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    ),
  /**
   * Passes on the lines of a program as they come.
   * @returns its exit code and its last lines
   */
  async stream(
    program: string,
    args: readonly string[],
    onLine: (line: string) => void,
    environment: Readonly<Record<string, string>>,
  ) {
    return runner
      .stream(program, args, { timeoutMs: longMs, environment, onLine })
      .catch((error: unknown) => {
        throw new StepFailed((error as Error).message)
      })
  },
}
