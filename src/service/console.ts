import { isIPv4 } from 'node:net'
import { reachableBy } from '../base/address.ts'
import { rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { replaceFile, sweepTemporary } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { createLock } from '../base/lock.ts'

/** The facts that the console of a host shows about the daemon. */
interface ConsoleFacts {
  /** Address and port on which the daemon listens. */
  readonly bound: { readonly address: string; readonly port: number }
  /** Addresses of the host under which clients may reach it. */
  readonly addresses: readonly string[]
  /** SHA-256 of the certificate as `AA:BB:…`. */
  readonly fingerprint: string
  /** Address of the platform and state of the connection; undefined in airgap mode. */
  readonly platform?: string | undefined
  /** The change of the network that is being tried. */
  readonly network?: string | undefined
}

// A console has 25 lines, and one URL that can be reached is enough.
const mostShown = 4

/**
 * The URLs of the API, the fingerprint that a client should see there, and in connected mode the platform. The text has the addresses themselves
 * rather than escapes of agetty(8): an escape gives one address only, which may belong to a container's bridge.
 */
export function consoleText({ bound, addresses, fingerprint, platform, network }: ConsoleFacts): string {
  const { address, port } = bound
  const urls = reachableBy(address, addresses)
    .toSorted((one, other) => Number(isIPv4(other)) - Number(isIPv4(one)))
    .slice(0, mostShown)
    .map((each) => `https://${isIPv4(each) ? each : `[${each}]`}:${port}`)
  const where = urls.join(' ') || `no network address yet, port ${port}`
  const line = (label: string, text: string | undefined) => (text === undefined ? '' : `${label}${text}\n`)
  return `edgehostd  ${where}\nSHA-256    ${fingerprint}\n${line('Platform   ', platform)}${line('Network    ', network)}`
}

interface ConsoleOptions {
  /** A file in /run/issue.d, agetty(8); where it is empty, the console shows nothing. */
  readonly file: string
  readonly runner: CommandRunner
  readonly log: Logger
}

/** The text that the console shows above its login prompt. */
interface Console {
  /** Replaces the text. If the file cannot be written, this logs one line and does not throw. */
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
  const inTurn = createLock()

  async function write(text: string): Promise<void> {
    if (text === shown) return
    try {
      // Leftovers of a killed daemon; other programs use the folder too.
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
