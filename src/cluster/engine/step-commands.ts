import { createBoundedRunner } from '../../system/bounded-memory.ts'
import { createRunner, type CommandRunner, type CommandStreamer } from '../../system/runner.ts'
import { StepFailed } from '../loop/step.ts'

const shortMs = 60_000
// The step of the action has a limit of its own.
const longMs = 3_600_000

export interface CommandOptions {
  readonly timeoutMs?: number
}

export interface Commands {
  /** @returns its standard output @throws StepFailed with its error output */
  run(program: string, args: readonly string[], options?: CommandOptions): Promise<string>
  /** @returns its failure; undefined for none */
  attempt(program: string, args: readonly string[], options?: CommandOptions): Promise<string | undefined>
  /**
   * Passes on the lines of a program as they come.
   * @returns its exit code and its last lines
   */
  stream(
    program: string,
    args: readonly string[],
    onLine: (line: string) => void,
    environment: Readonly<Record<string, string>>,
  ): Promise<{ readonly exitCode: number | undefined; readonly tail: string }>
}

function createCommands(runner: CommandRunner & CommandStreamer): Commands {
  const commands: Commands = {
    async run(program, args, { timeoutMs = shortMs } = {}) {
      const result = await runner.run(program, args, { timeoutMs }).catch(stepFailed)
      if (result.exitCode === 0) return result.stdout
      throw new StepFailed(
        `${[program, ...args].join(' ')} failed: ${result.stderr.trim() || result.stdout.trim()}`,
      )
    },
    attempt: (program, args, options) =>
      commands.run(program, args, options).then(
        () => undefined,
        (error: unknown) => (error as Error).message,
      ),
    stream: (program, args, onLine, environment) =>
      runner.stream(program, args, { timeoutMs: longMs, environment, onLine }).catch(stepFailed),
  }
  return commands
}

const stepFailed = (error: unknown) => {
  throw new StepFailed((error as Error).message, { cause: error })
}

const runner = createRunner()

/** Programs of the host, as an action runs them: to their end, and a failure has a reason for operators. */
export const commands = createCommands(runner)

/** kubeadm and kubectl, which read data of definitions and of the cluster: the same, with a bound for their memory. */
export const kubernetesCommands = createCommands(createBoundedRunner(runner))
