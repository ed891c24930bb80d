import { exitCodes } from './exit-codes.ts'

/**
 * The daemon cannot start, and an operator can fix the cause: the message states in one line what is wrong and which
 * command helps.
 */
export class StartError extends Error {
  override readonly name: string = 'StartError'
  /** The exit code of the process. */
  readonly exitCode: number = exitCodes.failed
}

/**
 * A start error for a wrong configuration, or a wrong file that it names; systemd does not restart the daemon at once.
 */
export class ConfigurationError extends StartError {
  override readonly exitCode = exitCodes.badConfiguration
}
