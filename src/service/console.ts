import { rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { replaceFile, sweepTemporary } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { serialize } from '../base/serialize.ts'

export interface ConsoleOptions {
  /** A file in /run/issue.d, agetty(8); where it is empty, the console shows nothing. */
  readonly file: string
  readonly runner: CommandRunner
  readonly log: Logger
}

/** The text that the console shows above its login prompt. */
export interface Console {
  /** Replaces the text. Where the file cannot be written, this logs one line and does not throw. */
  show(text: string): Promise<void>
  /** Removes the text. */
  remove(): Promise<void>
}

const reloadTimeoutMs = 5_000

export function createConsole({ file, runner, log }: ConsoleOptions): Console {
  if (file === '') return { show: () => Promise.resolve(), remove: () => Promise.resolve() }
  let shown = ''
  let hasWarned = false
  // In turn, so that the last text is the one that is shown.
  const inTurn = serialize()

  async function write(text: string): Promise<void> {
    if (text === shown) return
    try {
      // What a killed daemon has left; the folder is that of other programs too.
      if (shown === '') await sweepTemporary(dirname(file), basename(file))
      // With an empty line between the text and the prompt.
      await replaceFile(file, `${text}\n`, 0o644)
    } catch (error) {
      if (!hasWarned) warn(error)
      hasWarned = true
      return
    }
    shown = text
    hasWarned = false
    // Redraws prompts that are already shown. Not awaited, and no warning where it fails: a host may have no console.
    runner
      .run('agetty', ['--reload'], { timeoutMs: reloadTimeoutMs })
      .catch((error: unknown) => log.debug({ err: error }, 'agetty could not redraw the login prompts'))
  }

  function warn(error: unknown): void {
    const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message
    log.warn(
      { file, reason },
      'the console does not show address and fingerprint, since the file cannot be written; to mend it: ' +
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
          log.debug({ err: error, file }, 'the text of the console could not be removed'),
        )
      }),
  }
}
