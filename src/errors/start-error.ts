/**
 * The daemon cannot start, and an operator can mend that: the message says in one line what is wrong and which command
 * helps.
 */
export class StartError extends Error {
  override readonly name: string = 'StartError'
}
