import { Failure } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/**
 * Asks whether something shall be deleted.
 * @param question what goes
 * @throws Failure without a yes
 */
export function confirmDeletion(terminal: Terminal, question: string): void {
  const answer = terminal.ask(`${question}\nDelete it? [y/N] `)
  if (answer === undefined)
    throw new Failure(
      'usage',
      `${question}\nThere is no terminal to confirm it on. If it is to be deleted, add --yes. Nothing was deleted`,
    )
  if (!/^\s*y(es)?\s*$/i.test(answer)) throw new Failure('failed', 'nothing was deleted')
}
