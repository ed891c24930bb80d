import { CommandFailed, type CommandRunner } from '../system/runner.ts'

/** Questions to NSS about one account. They throw CommandFailed where it has not answered. */
export interface NssQuestions {
  /** The lines of these keys, as in the local files; none for a key that NSS does not know. */
  lines(database: 'passwd' | 'shadow' | 'group', keys: readonly string[]): Promise<string>
  /** Ids of all groups of a user. */
  groupIds(userName: string): Promise<number[]>
}

/** @param timeoutMs for all of them together */
export function createNssQuestions(runner: CommandRunner, timeoutMs: number): NssQuestions {
  const until = performance.now() + timeoutMs

  async function ask(program: string, args: readonly string[], answers: readonly number[]): Promise<string> {
    const leftMs = Math.max(1, Math.ceil(until - performance.now()))
    const { exitCode, stdout } = await runner.run(program, args, { timeoutMs: leftMs })
    if (exitCode !== undefined && answers.includes(exitCode)) return stdout
    // A program that failed or was killed has not said that there is no such account.
    const how = exitCode === undefined ? 'by a signal' : `exit code ${exitCode}`
    throw new CommandFailed(program, 'ended', how)
  }

  return {
    // getent(1) exits with 2 when one of the keys is unknown, and still prints the others.
    lines: (database, keys) => ask('getent', [database, '--', ...keys], [0, 2]),

    // id(1) exits with 1 for a user that is gone as well as for groups that it could not read. Ids, not names: names
    // from a directory may hold spaces or differ in case.
    groupIds: async (userName) =>
      (await ask('id', ['-G', '--', userName], [0])).trim().split(/\s+/).map(Number),
  }
}
