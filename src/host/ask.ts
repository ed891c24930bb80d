import { CommandFailed, type CommandRunner } from '../system/runner.ts'

/** Output of a tool, or in one line why it gave none. */
export type Answer = { readonly stdout: string } | { readonly problem: string }

/** Runs a tool of the machine for its output. A tool that is missing, hangs or fails gives a problem, never an error. */
export async function ask(
  runner: CommandRunner,
  program: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<Answer> {
  try {
    const { exitCode, stdout, stderr } = await runner.run(program, args, { timeoutMs })
    if (exitCode === 0) return { stdout }
    const said = (stderr.trim() || stdout.trim()).split('\n')[0] ?? ''
    return { problem: `${program} ${args.join(' ')}: exit code ${exitCode ?? 'none'}${said && ` (${said})`}` }
  } catch (error) {
    if (error instanceof CommandFailed) return { problem: error.message }
    throw error
  }
}
