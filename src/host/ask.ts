import { CommandFailed, type CommandRunner } from '../system/runner.ts'

/** What a tool printed, or why it has no answer, in one line. */
export type Answer = { readonly stdout: string } | { readonly problem: string }

/** Asks a tool of the machine. One that is not there, hangs or refuses is an answer too, never an error. */
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
