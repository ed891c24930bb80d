import type { CommandRunner } from '../system/runner.ts'

/** systemd, as the manager of this process. Outside a unit every verb does nothing. */
export interface ServiceManager {
  /** Runtime folder of the unit; undefined when systemd did not start this very process. */
  readonly runtimeDirectory: string | undefined
  /** How many sockets systemd holds for us. */
  readonly listenFds: number
  /** Says something to systemd, see sd_notify(3): `READY=1`, `STOPPING=1`, `STATUS=…`. */
  notify(...assignments: string[]): Promise<void>
  /** Feeds the watchdog at half its time for as long as `isMoving` says so. */
  startWatchdog(isMoving: () => boolean): void
  stopWatchdog(): void
}

const notifyTimeoutMs = 5_000

/**
 * Reads what systemd.exec(5) and sd_listen_fds(3) put into the environment. Node has no datagram Unix socket, so
 * notifications go through systemd-notify(1).
 */
export function createServiceManager({
  runner,
  environment,
  pid,
}: {
  runner: CommandRunner
  environment: Readonly<Record<string, string | undefined>>
  pid: number
}): ServiceManager {
  const {
    NOTIFY_SOCKET,
    LISTEN_FDS,
    LISTEN_PID,
    SYSTEMD_EXEC_PID,
    WATCHDOG_USEC,
    WATCHDOG_PID,
    RUNTIME_DIRECTORY,
  } = environment
  let watchdog: NodeJS.Timeout | undefined

  async function notify(...assignments: string[]): Promise<void> {
    if (!NOTIFY_SOCKET) return
    await runner.run('systemd-notify', [`--pid=${pid}`, ...assignments], {
      timeoutMs: notifyTimeoutMs,
      environment: { NOTIFY_SOCKET },
    })
  }

  return {
    runtimeDirectory: SYSTEMD_EXEC_PID === String(pid) ? RUNTIME_DIRECTORY : undefined,
    listenFds: LISTEN_PID === String(pid) ? Number(LISTEN_FDS) || 0 : 0,
    notify,
    startWatchdog(isMoving) {
      if (!WATCHDOG_USEC || (WATCHDOG_PID && WATCHDOG_PID !== String(pid))) return
      const halfMs = Number(WATCHDOG_USEC) / 2_000
      watchdog = setInterval(() => {
        // A ping that gets lost is not the end: the next one comes before the time is up.
        if (isMoving()) notify('WATCHDOG=1').catch(() => undefined)
      }, halfMs)
      watchdog.unref()
    },
    stopWatchdog: () => clearInterval(watchdog),
  }
}
