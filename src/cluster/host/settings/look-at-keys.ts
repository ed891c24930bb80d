import type { HostFiles } from '../../../host/files.ts'
import type { CommandRunner } from '../../../system/runner.ts'
import type { SettingObserved } from '../../observed.ts'
import type { KeysOrder } from './actions.ts'

export interface KeysLookOptions {
  readonly files: HostFiles
  /** Runs programs outside of the sandbox of the daemon. */
  readonly privileged: CommandRunner
  /** Path of `step.cjs`. */
  readonly program: string
  /** File of the note. */
  readonly note: string
  readonly account: string
  /** Milliseconds of a clock that is never set. */
  readonly monotonic: () => number
}

// The look is a process of its own; a file that was changed by hand is put right within this time.
const keptMs = 60_000
const timeoutMs = 20_000

/** Looks at the keys file, at most once a minute while nothing is to be done. Without keys that are wanted or placed no process is started. */
export function createKeysLook(options: KeysLookOptions) {
  const { files, privileged, program, note, account, monotonic } = options
  let last: { readonly of: string; readonly at: number; readonly found: SettingObserved } | undefined

  async function look(keys: readonly string[]): Promise<SettingObserved> {
    const order: KeysOrder = { note, account, keys }
    const args = [program, 'look-at-ssh-keys']
    try {
      const ended = await privileged.run(process.execPath, args, { timeoutMs, input: JSON.stringify(order) })
      if (ended.exitCode === 0) return JSON.parse(ended.stdout) as SettingObserved
      return unknown((ended.stdout.trim() || ended.stderr.trim()).split('\n').at(-1) ?? '')
    } catch (error) {
      return unknown((error as Error).message)
    }
  }

  return async (keys: readonly string[]): Promise<SettingObserved> => {
    const noted = await files.text(note)
    const isPlaced = noted !== undefined
    if (keys.length === 0) return { isApplied: !isPlaced, isDue: isPlaced, isPlaced, problem: '' }
    const of = JSON.stringify([keys, noted])
    if (last?.of === of && monotonic() - last.at < keptMs) return last.found
    const found = { ...(await look(keys)), isPlaced }
    // What is due is done at once, and then looked at again.
    last = found.isDue ? undefined : { of, at: monotonic(), found }
    return found
  }
}

const unknown = (reason: string): SettingObserved => ({
  ...{ isApplied: false, isDue: false, isPlaced: false },
  problem: `the keys file cannot be looked at (${reason}); see: journalctl -u edgehostd`,
})
