import { exitCodes } from './exit-codes.ts'

/**
 * The daemon cannot start, and an operator can fix the cause: the message states in one line what is wrong and which
 * command helps. The cause may pass by itself too, such as a port or a state folder that a process which ends still has.
 */
export class StartError extends Error {
  override readonly name: string = 'StartError'
  /** The exit code of the process. */
  readonly exitCode: number = exitCodes.failed
}

/** A start error by design: each further start ends in the same way until an operator has acted, for example on a damaged state. */
export class StartRefused extends StartError {
  override readonly name: string = 'StartRefused'
  override readonly exitCode = exitCodes.badConfiguration
}

/** A start error for a wrong configuration, or a wrong file that it names. */
export class ConfigurationError extends StartError {
  override readonly exitCode: number = exitCodes.badConfiguration
}

/** A start error for a file or mount that the configuration names: a disk may not be there yet, a renewal may be half done. */
export class NamedFileUnusable extends ConfigurationError {
  override readonly exitCode = exitCodes.unusableFile
}
