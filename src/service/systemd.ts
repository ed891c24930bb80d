import type { CommandRunner } from '../system/runner.ts'

/** systemd as the manager of this process. Outside a unit, every function does nothing. */
export interface ServiceManager {
  /** Runtime folder of the unit; undefined when systemd did not start this very process. */
  readonly runtimeDirectory: string | undefined
  /** Number of sockets that systemd passed to this process. */
  readonly listenFds: number
  /** Notifies systemd, see sd_notify(3): `READY=1`, `STOPPING=1`, `STATUS=…`. */
  notify(...assignments: string[]): Promise<void>
  /** Feeds the watchdog at half its timeout while `isAlive` is true. */
  startWatchdog(isAlive: () => boolean): void
  stopWatchdog(): void
}

const notifyTimeoutMs = 5_000

/**
 * Reads the environment variables of systemd.exec(5) and sd_listen_fds(3). Node has no datagram Unix sockets, so
 * notifications are sent by systemd-notify(1).
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
    startWatchdog(isAlive) {
      if (!WATCHDOG_USEC || (WATCHDOG_PID && WATCHDOG_PID !== String(pid))) return
      const halfMs = Number(WATCHDOG_USEC) / 2_000
      watchdog = setInterval(() => {
        // A lost notification does no harm: the next one is sent before the timeout.
        if (isAlive()) notify('WATCHDOG=1').catch(() => undefined)
      }, halfMs)
      watchdog.unref()
    },
    stopWatchdog: () => clearInterval(watchdog),
  }
}
