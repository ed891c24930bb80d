/**
 * Exit codes of the daemon, sysexits.h. A cause that may pass ends it with `failed` or `unusableFile`, and systemd starts it again. With
 * `badConfiguration` it refuses to start until an operator has acted: the unit of a platform then stays `failed`
 * (`RestartPreventExitStatus=`), and a host's, which has to answer once the cause is gone, is started again all the same.
 */
export const exitCodes = {
  ok: 0,
  failed: 1,
  /** A file or mount that the configuration names, which another program may be about to write: EX_NOINPUT. */
  unusableFile: 66,
  /** EX_CONFIG. */
  badConfiguration: 78,
} as const

/**
 * The daemon cannot start, and an operator can fix the cause: the message states in one line the problem and the command that helps. The
 * cause may pass by itself too, such as a port or a state folder that a process which ends still has.
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
