import { CommandFailed, type CommandRunner } from '../system/runner.ts'

/** NSS queries about one account. They throw CommandFailed when NSS does not answer. */
export interface NssQuestions {
  /** The lines of these keys, in the format of the local files; empty for unknown keys. */
  lines(database: 'passwd' | 'shadow' | 'group', keys: readonly string[]): Promise<string>
  /** Ids of all groups of a user. */
  groupIds(userName: string): Promise<number[]>
}

/** @param timeoutMs for all queries together */
export function createNssQuestions(runner: CommandRunner, timeoutMs: number): NssQuestions {
  const until = performance.now() + timeoutMs

  async function ask(program: string, args: readonly string[], answers: readonly number[]): Promise<string> {
    const leftMs = Math.max(1, Math.ceil(until - performance.now()))
    const { exitCode, stdout } = await runner.run(program, args, { timeoutMs: leftMs })
    if (exitCode !== undefined && answers.includes(exitCode)) return stdout
    // A program that failed or was killed has not reported the account as missing.
    const how = exitCode === undefined ? 'by a signal' : `exit code ${exitCode}`
    throw new CommandFailed(program, 'ended', how)
  }

  return {
    // getent(1) exits with 2 when one of the keys is unknown, and still prints the others.
    lines: (database, keys) => ask('getent', [database, '--', ...keys], [0, 2]),

    // id(1) exits with 1 both for a deleted user and for groups that it could not read. Ids, because group names from a
    // directory may contain spaces or differ in case.
    groupIds: async (userName) =>
      (await ask('id', ['-G', '--', userName], [0])).trim().split(/\s+/).map(Number),
  }
}
