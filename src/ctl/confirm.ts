import { Failure } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'
import { readFileSync } from 'node:fs'
import type { CommandLine } from './command.ts'
import type { Context } from './client.ts'
import { oneLine } from './layout.ts'

/** A question before something is done. */
interface Question {
  /** Effect of a yes. */
  readonly what: string
  /** For example `Delete it?`. */
  readonly ask: string
  /** Participle of the effect, for example `deleted`. */
  readonly done: string
}

/** @throws Failure without a yes */
export function confirm(terminal: Terminal, { what, ask, done }: Question): void {
  const answer = terminal.ask(`${what}\n${ask} [y/N] `)
  if (answer === undefined)
    throw new Failure(
      'usage',
      `${what}\nThere is no terminal to confirm it on. If it is to be ${done}, add --yes. Nothing was ${done}`,
    )
  if (!/^\s*y(es)?\s*$/i.test(answer)) throw new Failure('failed', `nothing was ${done}`)
}

/** The question of a deletion. @param what its effect */
const deletion = (what: string): Question => ({ what, ask: 'Delete it?', done: 'deleted' })

/**
 * Asks whether something shall be deleted.
 * @param question effect of the deletion
 * @throws Failure without a yes
 */
export const confirmDeletion = (terminal: Terminal, question: string): void =>
  confirm(terminal, deletion(question))

/**
 * The account of a login, from its argument or `--user`.
 * @throws Failure usage where both are given and differ
 */
export function nameAccount({ arguments: [argument], options: { user } }: CommandLine): string | undefined {
  if (argument !== undefined && user !== undefined && argument !== user)
    throw new Failure(
      'usage',
      `login ${oneLine(argument)} contradicts --user ${oneLine(user)}; name one account`,
    )
  return argument ?? user
}

/**
 * A password, from standard input with `--password-stdin`, or asked for without an echo.
 * @throws Failure usage where there is neither; failed for an empty one
 */
export async function readPassword(
  { line, terminal }: Pick<Context<'password-stdin'>, 'line' | 'terminal'>,
  question: string,
): Promise<string> {
  if (line.options['password-stdin'] !== undefined) {
    const [first = ''] = readFileSync(0, 'utf8').split('\n')
    return requirePassword(first.replace(/\r$/, ''))
  }
  const typed = await terminal.askSecretly(question)
  if (typed === undefined)
    throw new Failure('usage', 'there is no terminal to ask for the password on; use --password-stdin')
  return requirePassword(typed)
}

function requirePassword(password: string): string {
  if (password === '') throw new Failure('failed', 'the password is empty')
  return password
}
