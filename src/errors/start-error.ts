import { exitCodes } from './exit-codes.ts'

/**
 * The daemon cannot start, and an operator can mend that: the message says in one line what is wrong and which command
 * helps.
 */
export class StartError extends Error {
  override readonly name: string = 'StartError'
  /** What the process ends with. */
  readonly exitCode: number = exitCodes.failed
}

/** The same where the configuration, or a file that it names, has to be corrected; systemd does not start it again at once. */
export class ConfigurationError extends StartError {
  override readonly exitCode = exitCodes.badConfiguration
}
