import type { HostFiles } from '../host/files.ts'
import { createSharedRun } from '../base/shared-run.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { parseHardware, type StoredInventory } from './stored-inventory.ts'

// Disks and network interfaces beside the buses: a card may get its interface later than its device, a reader its medium.
const folders = ['/sys/bus/usb/devices', '/sys/bus/pci/devices', '/sys/block', '/sys/class/net']

/** The present hardware, as a text that changes when a device is added or removed; devices of pods and volumes are left out. */
export async function listDevices(files: HostFiles): Promise<string> {
  const found: string[] = []
  for (const folder of folders)
    for (const name of await files.names(folder)) {
      const path = await files.link(`${folder}/${name}`)
      if (path && !path.startsWith('/sys/devices/virtual/')) found.push(path)
    }
  return found.join('\n')
}

interface ReaderOptions {
  readonly runner: CommandRunner
  /** Path of `inventory.cjs`. */
  readonly program: string
  readonly files: HostFiles
  readonly stored: StoredInventory
  /** Called when a new reading is stored. */
  readonly onRead: () => Promise<void>
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Reads the inventory by its program. */
export interface Reader {
  /** Reads the inventory again. Calls during a reading share the next one. Never throws. */
  refresh(): Promise<void>
  /** Why the last reading failed; undefined where it succeeded. */
  failure(): string | undefined
  /** Whether the last reading failed less than ten minutes ago. */
  hasFailedLately(): boolean
  /** Waits for a reading that the stop of the daemon ends. */
  stop(): Promise<void>
}

/** Time limit of the whole program; each of its children has 10 s. */
const programTimeoutMs = 300_000

const maxOutputBytes = 4_194_304
const retryMs = 600_000

export function createReader(options: ReaderOptions): Reader {
  const { runner, program, files, stored, onRead, stopping, clock, log } = options
  let failed: { readonly why: string; readonly at: number } | undefined

  async function read(): Promise<void> {
    stopping.throwIfAborted()
    // Before the reading, so that a device that is added meanwhile counts as a change.
    const devices = await listDevices(files)
    const { stdout, stderr } = await runner.run(process.execPath, [program], {
      timeoutMs: programTimeoutMs,
      maxOutputBytes,
      signal: stopping,
    })
    // The exit code is not checked: when a tool that hangs in the kernel outlives the program, systemd reports a failed unit.
    if (stdout === '') throw new Error(/^\w*Error: .*$/m.exec(stderr)?.[0] ?? 'the program was ended')
    stored.put({ readAt: clock.now(), devices, hardware: parseHardware(stdout) })
    await onRead()
  }

  const readings = createSharedRun(async () => {
    try {
      await read()
      if (failed) log.info('the inventory can be read again')
      failed = undefined
    } catch (error) {
      if (stopping.aborted) return
      if (!failed) log.warn({ err: error }, `the inventory of the hardware cannot be read; ${advice}`)
      failed = { why: (error as Error).message, at: clock.monotonic() }
    }
  })

  return {
    refresh: readings.run,
    failure: () => failed?.why,
    hasFailedLately: () => failed !== undefined && clock.monotonic() - failed.at < retryMs,
    stop: readings.ended,
  }
}

const advice = 'try: edgehostctl host inventory --refresh'
