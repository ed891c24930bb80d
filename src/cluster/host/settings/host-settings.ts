import type { SettingsObserved } from '../../observed.ts'
import type { PreflightProblem } from '../../problem.ts'
import type { Step } from '../../step.ts'
import type { WantedSettings } from '../../wanted.ts'
import type { KeysOrder, NtpOrder } from './actions.ts'
import { createKeysLook, type KeysLookOptions } from './look-at-keys.ts'
import { observeNtpServers } from './ntp-servers.ts'

export interface HostSettingsOptions extends Omit<KeysLookOptions, 'note'> {
  /** Files of the notes of what was placed. */
  readonly notes: { readonly ntpServers: string; readonly sshKeys: string }
}

const timeoutMs = 120_000
const clusterPath = 'spec.cloudConfig.spec.clusterConfig'

/** NTP servers and SSH keys that this host gets from its cluster. */
export function createHostSettings(options: HostSettingsOptions) {
  const { files, notes, account } = options
  const lookAtKeys = createKeysLook({ ...options, note: notes.sshKeys })

  async function observe({ ntpServers, sshKeys }: WantedSettings): Promise<SettingsObserved> {
    const [ofServers, ofKeys] = await Promise.all([
      observeNtpServers({ files, note: notes.ntpServers }, ntpServers),
      lookAtKeys(sshKeys),
    ])
    return { ntpServers: ofServers, sshKeys: ofKeys }
  }

  const ntpStep = (key: string, title: string, servers: readonly string[]): Step => ({
    ...{ key, title, timeoutMs },
    work: {
      kind: 'action',
      action: 'ntp-servers',
      order: { note: notes.ntpServers, servers } satisfies NtpOrder,
    },
  })
  const keysStep = (key: string, title: string, keys: readonly string[]): Step => ({
    ...{ key, title, timeoutMs },
    work: {
      kind: 'action',
      action: 'ssh-keys',
      order: { note: notes.sshKeys, account, keys } satisfies KeysOrder,
    },
  })

  return {
    observe,
    /** What of the settings this host cannot have; the cluster comes without it. */
    async preflight(wanted: WantedSettings): Promise<readonly PreflightProblem[]> {
      const seen = await observe(wanted)
      return (['ntpServers', 'sshKeys'] as const).flatMap((name): PreflightProblem[] =>
        wanted[name].length === 0 || seen[name].problem === ''
          ? []
          : [
              {
                ...{ code: 'SettingNotApplied', severity: 'warning', path: `${clusterPath}.${name}` },
                message: `${name} would be stored, but not applied: ${seen[name].problem}`,
              },
            ],
      )
    },
    /** Steps that give this host the settings, and take away those that are not wanted any more. */
    steps: ({ ntpServers, sshKeys }: WantedSettings, seen: SettingsObserved): readonly Step[] => [
      ...(seen.ntpServers.isDue
        ? [ntpStep('ntp-servers', 'Give the host the NTP servers of the cluster', ntpServers)]
        : []),
      ...(seen.sshKeys.isDue
        ? [keysStep('ssh-keys', 'Give the host the SSH keys of the cluster', sshKeys)]
        : []),
    ],
    /** Steps that take away what was placed. */
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
