import type { execa } from 'execa'
import { childOptions, loadExeca } from './child.ts'
import { createLineSplitter } from '../base/lines.ts'
import type { Logger } from './log.ts'

export interface FollowOptions {
  /** One line of standard output as it comes, without its end. */
  readonly onLine: (line: string) => void
  /** The program runs (again): whatever happened before now was not seen. */
  readonly onStart?: () => void
  /** Why the program is gone; it is started again after a pause. */
  readonly onEnd?: (reason: string) => void
}

/** A long-lived child. */
export interface Following {
  isRunning(): boolean
  /** Ends it for good. */
  stop(): void
}

/** Programs that run as long as the daemon does and tell something line by line. */
export interface CommandFollower {
  /**
   * Starts a program and keeps it running: when it ends it is started again, after a pause that doubles from 1 s to
   * 5 min and is forgotten once it has run for a minute.
   * @param program absolute path, or a name looked up in the system folders
   */
  follow(program: string, args: readonly string[], options: FollowOptions): Following
}

export interface FollowerOptions {
  readonly log: Logger
  readonly firstPauseMs?: number
  readonly longestPauseMs?: number
  /** One that ran this long was well. */
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
      // Outside a unit nothing else ends it when the daemon is gone.
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
    // It may talk for months: nothing is kept but the end of its complaints.
    buffer: { stdout: false, stderr: true },
    maxBuffer: { stdout: Infinity, stderr: 4_096 },
    forceKillAfterDelay: 1_000,
  })
}
