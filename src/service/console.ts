import { rm } from 'node:fs/promises'
import { replaceFile } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { serialize } from '../base/serialize.ts'

export interface ConsoleOptions {
  /** A file of /run/issue.d, agetty(8); empty: the console says nothing. */
  readonly file: string
  readonly runner: CommandRunner
  readonly log: Logger
}

/** What the console shows above its login prompt. */
export interface Console {
  /** Shows a text in place of the one before. That it cannot be written is one line of the log, and no error. */
  show(text: string): Promise<void>
  /** Takes it away. */
  remove(): Promise<void>
}

const reloadTimeoutMs = 5_000

export function createConsole({ file, runner, log }: ConsoleOptions): Console {
  if (file === '') return { show: () => Promise.resolve(), remove: () => Promise.resolve() }
  let shown = ''
  let hasWarned = false
  // One after the other, so that the last text stays.
  const inTurn = serialize()

  async function write(text: string): Promise<void> {
    if (text === shown) return
    try {
      // The empty line stands between the text and the prompt.
      await replaceFile(file, `${text}\n`, 0o644)
    } catch (error) {
      if (!hasWarned) warn(error)
      hasWarned = true
      return
    }
    shown = text
    hasWarned = false
    // Refreshes prompts that are shown already. It is not waited for, and a host without a console has no prompt.
    runner
      .run('agetty', ['--reload'], { timeoutMs: reloadTimeoutMs })
      .catch((error: unknown) => log.debug({ err: error }, 'consoles do not show the new text yet'))
  }

  function warn(error: unknown): void {
    const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message
    log.warn(
      { file, reason },
      'the console does not show address and fingerprint, the file cannot be written: mend it with ' +
        'systemd-tmpfiles --create edgehostd.conf && systemctl restart edgehostd, or set host.console.issueFile to ""',
    )
  }

  return {
    show: (text) => inTurn(() => write(text)),
    remove: () =>
      inTurn(async () => {
        if (shown === '') return
        shown = ''
        await rm(file, { force: true }).catch((error: unknown) =>
          log.debug({ err: error, file }, 'the text of the console stays'),
        )
      }),
  }
}
