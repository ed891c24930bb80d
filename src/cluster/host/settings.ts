import { createHostFiles, type HostFiles } from '../../host/files.ts'
import { createRunner, type CommandRunner } from '../../system/runner.ts'
import type { StepActions, StepOrder, Step } from '../loop/step.ts'
import { placeNtpServers, observeNtpServers } from './ntp-servers.ts'
import { observeSshKeys, placeSshKeys } from './ssh-keys.ts'
import type { SettingObserved, SettingsObserved } from '../loop/observed.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { DesiredSettings } from '../desired/desired-state.ts'

/** Order of `ntp-servers`; without servers the placed file is removed. */
interface NtpOrder extends StepOrder {
  /** File of the note. */
  readonly note: string
  readonly servers: readonly string[]
}

/** Order of `ssh-keys` and of `look-at-ssh-keys`; without keys the placed file is removed. */
interface KeysOrder extends StepOrder {
  readonly note: string
  readonly account: string
  readonly keys: readonly string[]
}

const host = () => ({ files: createHostFiles(), root: '/', runner: createRunner() })

/** Actions of the settings of the host. */
export const settingsActions: StepActions = {
  'ntp-servers': async (order, print) => {
    const { note, servers } = order as NtpOrder
    await placeNtpServers({ ...host(), note, print }, servers)
  },

  'ssh-keys': async (order, print) => {
    const { note, account, keys } = order as KeysOrder
    await placeSshKeys({ ...host(), note, account, keys }, print)
  },

  /** Prints `SettingObserved`; a home may be readable by its account only, and the daemon has not even the rights of root. */
  'look-at-ssh-keys': async (order, print) => {
    const { note, account, keys } = order as KeysOrder
    print(JSON.stringify(await observeSshKeys({ ...host(), note, account, keys })))
  },
}

interface KeysObserverOptions {
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

// The observation is a process of its own; a file that was changed by hand is put right within this time.
const keptMs = 60_000
const observationTimeoutMs = 20_000

/** Observes the keys file, at most once a minute while nothing is to be done. Without desired or placed keys no process is started. */
function createKeysObserver(options: KeysObserverOptions) {
  const { files, privileged, program, note, account, monotonic } = options
  let last: { readonly of: string; readonly at: number; readonly found: SettingObserved } | undefined

  async function observe(keys: readonly string[]): Promise<SettingObserved> {
    const order: KeysOrder = { note, account, keys }
    const args = [program, 'look-at-ssh-keys']
    try {
      const ended = await privileged.run(process.execPath, args, {
        timeoutMs: observationTimeoutMs,
        input: JSON.stringify(order),
      })
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
    const found = { ...(await observe(keys)), isPlaced }
    // Due work is done at once, and then observed again.
    last = found.isDue ? undefined : { of, at: monotonic(), found }
    return found
  }
}

const unknown = (reason: string): SettingObserved => ({
  isApplied: false,
  isDue: false,
  isPlaced: false,
  problem: `the keys file cannot be looked at (${reason}); see: journalctl -u edgehostd`,
})

interface HostSettingsOptions extends Omit<KeysObserverOptions, 'note'> {
  /** Files of the notes of placed files. */
  readonly notes: { readonly ntpServers: string; readonly sshKeys: string }
}

const timeoutMs = 120_000
const clusterPath = 'spec.cloudConfig.spec.clusterConfig'

/** NTP servers and SSH keys that this host gets from its cluster. */
export function createHostSettings(options: HostSettingsOptions) {
  const { files, notes, account } = options
  const observeKeys = createKeysObserver({ ...options, note: notes.sshKeys })

  async function observe({ ntpServers, sshKeys }: DesiredSettings): Promise<SettingsObserved> {
    const [ofServers, ofKeys] = await Promise.all([
      observeNtpServers({ files, note: notes.ntpServers }, ntpServers),
      observeKeys(sshKeys),
    ])
    return { ntpServers: ofServers, sshKeys: ofKeys }
  }

  const ntpStep = (key: string, title: string, servers: readonly string[]): Step => ({
    key,
    title,
    timeoutMs,
    work: {
      kind: 'action',
      action: 'ntp-servers',
      order: { note: notes.ntpServers, servers } satisfies NtpOrder,
    },
  })
  const keysStep = (key: string, title: string, keys: readonly string[]): Step => ({
    key,
    title,
    timeoutMs,
    work: {
      kind: 'action',
      action: 'ssh-keys',
      order: { note: notes.sshKeys, account, keys } satisfies KeysOrder,
    },
  })

  return {
    observe,
    /** Settings that this host cannot have; the cluster comes without them. */
    async preflight(desired: DesiredSettings): Promise<readonly PreflightProblem[]> {
      const seen = await observe(desired)
      return (['ntpServers', 'sshKeys'] as const).flatMap((name): PreflightProblem[] =>
        desired[name].length === 0 || seen[name].problem === ''
          ? []
          : [
              {
                code: 'SettingNotApplied',
                severity: 'warning',
                path: `${clusterPath}.${name}`,
                message: `${name} would be stored, but not applied: ${seen[name].problem}`,
              },
            ],
      )
    },
    /** Steps that give this host the settings, and take away undesired ones. */
    steps: ({ ntpServers, sshKeys }: DesiredSettings, seen: SettingsObserved): readonly Step[] => [
      ...(seen.ntpServers.isDue
        ? [ntpStep('ntp-servers', 'Give the host the NTP servers of the cluster', ntpServers)]
        : []),
      ...(seen.sshKeys.isDue
        ? [keysStep('ssh-keys', 'Give the host the SSH keys of the cluster', sshKeys)]
        : []),
    ],
    /** Steps that remove placed files. */
    restoreSteps: (seen: SettingsObserved): readonly Step[] => [
      ...(seen.ntpServers.isPlaced
        ? [ntpStep('take-ntp-servers', 'Give the host its own NTP servers again', [])]
        : []),
      ...(seen.sshKeys.isPlaced
        ? [keysStep('take-ssh-keys', 'Take the SSH keys of the cluster from the host', [])]
        : []),
    ],
  }
}
