import { rm } from 'node:fs/promises'
import { createRunner } from '../../system/runner.ts'
import type { StepActions, StepOrder } from '../loop/step.ts'
import { dropAddress, holdAddress, type HeldAddress } from './address.ts'
import { readHostRecord, writeHostRecord, readHostState } from './read-state.ts'
import { restoreHost } from './restore.ts'
import { settingsActions } from './settings.ts'

/** Order of `record-host`. */
export interface RecordOrder extends StepOrder {
  /** Path of the record. */
  readonly file: string
}

/** Order of `restore-host`. */
export interface RestoreOrder extends StepOrder {
  readonly file: string
  /** `DesiredKubernetes.config`, which names the networks of pods and services. */
  readonly config: string
}

/** Actions of the host's part. */
export const hostActions: StepActions = {
  ...settingsActions,

  /** Records the host. A record that is there stays: it is older than the changes of the cluster. */
  'record-host': async (order, print) => {
    const { file } = order as RecordOrder
    const found = await readHostRecord(file)
    if (found !== undefined && found !== 'damaged') {
      print('the host is recorded already')
      return
    }
    const state = await readHostState(createRunner())
    await writeHostRecord(file, { version: 1, recordedAt: new Date().toISOString(), state })
    print(
      `recorded: ${state.links.length} interfaces, ${state.routes.length} routes, ${countRules(state.filters)} rules`,
    )
  },

  /** Takes back changes since the record, and then removes the record. */
  'restore-host': async (order, print) => {
    const { file, config } = order as RestoreOrder
    // Loaded here: the other actions start without yaml.
    const { kubernetesSettings } = await import('./kubernetes-settings.ts')
    const settings = kubernetesSettings(config)
    const found = await readHostRecord(file)
    // Restored before.
    if (found === undefined) {
      print('the host has no record')
      return
    }
    if (found === 'damaged') print(`${file} cannot be read: only what has a name of Kubernetes is taken away`)
    await restoreHost({
      runner: createRunner(),
      before: found === 'damaged' ? undefined : found.state,
      networks: [...settings.pods, ...settings.services],
      print,
    })
    await rm(file, { force: true })
  },

  'hold-address': async (order, print) => {
    const held = order as unknown as HeldAddress
    await holdAddress(createRunner(), held)
    print(`${held.networkInterface} has the address ${held.address}`)
  },

  'drop-address': async () => dropAddress(createRunner()),
}

const countRules = (filters: Awaited<ReturnType<typeof readHostState>>['filters']): number =>
  filters.flatMap(({ tables }) => tables.flatMap(({ rules }) => rules)).length
