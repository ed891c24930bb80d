import { createHostFiles } from '../../../host/files.ts'
import { createRunner } from '../../../system/runner.ts'
import type { StepActions } from '../../step-program/action.ts'
import type { StepOrder } from '../../step.ts'
import { placeNtpServers } from './ntp-servers.ts'
import { observeSshKeys, placeSshKeys } from './ssh-keys.ts'

/** Order of `ntp-servers`; without servers what was placed is taken away. */
export interface NtpOrder extends StepOrder {
  /** File of the note. */
  readonly note: string
  readonly servers: readonly string[]
}

/** Order of `ssh-keys` and of `look-at-ssh-keys`; without keys what was placed is taken away. */
export interface KeysOrder extends StepOrder {
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
