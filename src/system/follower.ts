import type { execa } from 'execa'
import { childOptions, loadExeca } from './child.ts'
import { createLineSplitter } from '../base/lines.ts'
import type { Logger } from './log.ts'

export interface FollowOptions {
  /** One line of standard output as it comes, without its end. */
  readonly onLine: (line: string) => void
  /** The program was started, or started again; it does not report events from before its start. */
  readonly onStart?: () => void
  /** The program ended, with the reason; it is started again after a pause. */
  readonly onEnd?: (reason: string) => void
}

/** A long-lived child. */
export interface Following {
  isRunning(): boolean
  /** Ends the program and does not start it again. */
  stop(): void
}

/** Programs that run as long as the daemon does and report events line by line. */
export interface CommandFollower {
  /**
   * Starts a program and keeps it running: when it ends it is started again, after a pause that doubles from 1 s to
   * 5 min. Once the program has run for a minute, the next pause is 1 s again.
   * @param program absolute path, or a name looked up in the system folders
   */
  follow(program: string, args: readonly string[], options: FollowOptions): Following
}

export interface FollowerOptions {
  readonly log: Logger
  readonly firstPauseMs?: number
  readonly longestPauseMs?: number
  /** After a run this long, the next pause is the first again. */
  readonly wellAfterMs?: number
}

/** Follows programs of this machine through execa. */
export function createFollower(options: FollowerOptions): CommandFollower {
  const { log, firstPauseMs = 1_000, longestPauseMs = 300_000, wellAfterMs = 60_000 } = options
  return {
    follow(program, args, { onLine, onStart, onEnd }) {
      let child: ReturnType<typeof start> | undefined
      let timer: NodeJS.Timeout | undefined
      let pauseMs = firstPauseMs
      let isStopped = false

      const begin = async () => {
        const execa = await loadExeca()
        if (isStopped) return
        const startedAt = performance.now()
        log.debug({ program }, 'a program is started')
        child = start(execa, program, args)
        if (child.pid !== undefined) onStart?.()
        child.stdout.on('data', createLineSplitter((line) => onLine(line)).add)
        void child.then(({ exitCode, signal, code, stderr }) => {
          child = undefined
          if (isStopped) return
          if (performance.now() - startedAt >= wellAfterMs) pauseMs = firstPauseMs
          const cause = exitCode === undefined ? (signal ?? code ?? 'not started') : `exit code ${exitCode}`
          const reason = [cause, stderr.trim()].filter(Boolean).join(': ')
          log.debug({ program, reason, pauseMs }, 'a program that is followed has ended')
          timer = setTimeout(() => void begin(), pauseMs)
          timer.unref()
          pauseMs = Math.min(pauseMs * 2, longestPauseMs)
          onEnd?.(reason)
        })
      }
      const stop = () => {
        isStopped = true
        clearTimeout(timer)
        child?.kill('SIGTERM')
      }
      void begin()
      // Outside a systemd unit, only this ends the program together with the daemon.
      process.once('exit', stop)

      return {
        isRunning: () => child?.pid !== undefined,
        stop() {
          process.off('exit', stop)
          stop()
        },
      }
    },
  }
}

function start(run: typeof execa, program: string, args: readonly string[]) {
  return run(program, args, {
    ...childOptions,
    stdin: 'ignore',
    // The program may write for months: only the end of its error output is kept.
    buffer: { stdout: false, stderr: true },
    maxBuffer: { stdout: Infinity, stderr: 4_096 },
    forceKillAfterDelay: 1_000,
  })
}
