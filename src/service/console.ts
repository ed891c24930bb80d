import { isIPv4 } from 'node:net'
import { reachableBy } from '../base/address.ts'
import { rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { formatTime } from '../base/time.ts'
import type { OpenPort } from '../root/room.ts'
import { replaceFile, sweepTemporary } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { createLock } from '../base/lock.ts'

/** The facts that the console of a host shows about the daemon. */
interface ConsoleFacts {
  /** Address and port on which the daemon listens. */
  readonly bound: OpenPort
  /** Addresses of the host under which clients may reach it. */
  readonly addresses: readonly string[]
  /** SHA-256 of the certificate as `AA:BB:…`. */
  readonly fingerprint: string
  /** Address of the platform and state of the connection; undefined in airgap mode. */
  readonly platform?: string | undefined
  /** The change of the network that is being tried. */
  readonly change?: ChangeOnConsole | undefined
}

/** A change of the network that is taken back unless it is confirmed. */
export interface ChangeOnConsole {
  readonly uid: string
  readonly summary: string
  /** When it is taken back, milliseconds since 1970. */
  readonly deadlineAt: number
  /** Addresses that its links have now, also by DHCP. */
  readonly addresses: readonly string[]
}

// A console has 25 lines, and one URL that can be reached is enough.
const mostShown = 4

/**
 * The URLs of the API, the fingerprint that a client should see there, in connected mode the platform, and the change of the network that is being tried. The text has the addresses themselves
 * rather than escapes of agetty(8): an escape gives one address only, which may belong to a container's bridge.
 */
export function consoleText({ bound, addresses, fingerprint, platform, change }: ConsoleFacts): string {
  const where = urlsOf(bound, addresses) || `no network address yet, port ${bound.port}`
  return [
    `edgehostd  ${where}`,
    `SHA-256    ${fingerprint}`,
    ...(platform === undefined ? [] : [`Platform   ${platform}`]),
    ...(change === undefined ? [] : linesOf(change, bound)),
    '',
  ].join('\n')
}

function linesOf({ uid, summary, deadlineAt, addresses }: ChangeOnConsole, bound: OpenPort): string[] {
  return [
    `Network    tried until ${formatTime(deadlineAt)}, then taken back: ${summary}`,
    `           its links have now: ${urlsOf(bound, addresses) || 'no address under which this host is reached'}`,
    `           keep it: edgehostctl network confirm ${uid}`,
  ]
}

const urlsOf = ({ address, port }: OpenPort, addresses: readonly string[]): string =>
  reachableBy(address, addresses)
    .toSorted((one, other) => Number(isIPv4(other)) - Number(isIPv4(one)))
    .slice(0, mostShown)
    .map((each) => `https://${isIPv4(each) ? each : `[${each}]`}:${port}`)
    .join(' ')

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
