import { Failure } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** A question before something is done. */
export interface Question {
  /** What will happen. */
  readonly what: string
  /** For example `Delete it?`. */
  readonly ask: string
  /** What has not happened without a yes, for example `deleted`. */
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

/** The question of a deletion. @param what what goes */
export const deletion = (what: string): Question => ({ what, ask: 'Delete it?', done: 'deleted' })

/**
 * Asks whether something shall be deleted.
 * @param question what goes
 * @throws Failure without a yes
 */
export const confirmDeletion = (terminal: Terminal, question: string): void =>
  confirm(terminal, deletion(question))
