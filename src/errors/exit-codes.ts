/** Exit codes of the daemon, sysexits.h. */
export const exitCodes = { ok: 0, failed: 1, badConfiguration: 78 } as const
