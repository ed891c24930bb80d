/**
 * Exit codes of the daemon, sysexits.h. A cause that may pass ends it with `failed` or `unusableFile`, and systemd starts it again. With
 * `badConfiguration` it refuses to start until an operator has acted: the unit of a platform then stays `failed`
 * (`RestartPreventExitStatus=`), and that of a host, which has to answer once the cause is gone, is started again all the same.
 */
export const exitCodes = {
  ok: 0,
  failed: 1,
  /** A file or mount that the configuration names, which another program may be about to write: EX_NOINPUT. */
  unusableFile: 66,
  /** EX_CONFIG. */
  badConfiguration: 78,
} as const
