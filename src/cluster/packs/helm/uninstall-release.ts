import { mkdir, rm } from 'node:fs/promises'
import type { CommandRunner, CommandStreamer } from '../../../system/runner.ts'
import type { StepAction } from '../../step-program/action.ts'
import { wasNeverDeployed } from './cure.ts'
import { createHelm } from './helm.ts'

/** Order of the action `helm-uninstall`; all paths are absolute. */
export interface UninstallOrder {
  /** helm itself. */
  readonly program: string
  readonly kubeconfig: string
  readonly release: string
  readonly namespace: string
  /** A folder of its own, made and removed by the action. */
  readonly home: string
  /** Files about the release, which go with it. */
  readonly files: readonly string[]
  /** How long helm waits until the objects are gone. */
  readonly timeoutMs: number
}

/** The action `helm-uninstall`: deletes a release with its objects; one that is not there is no error. */
export const createUninstallAction =
  (runner: CommandRunner & CommandStreamer): StepAction =>
  async (given, print) => {
    const { home, files, timeoutMs, ...order } = given as unknown as UninstallOrder
    await rm(home, { recursive: true, force: true })
    await mkdir(home, { recursive: true, mode: 0o700 })
    try {
      const helm = createHelm({ runner, home, ...order })
      const history = await helm.history()
      const [last] = history.toSorted((one, other) => other.revision - one.revision)
      if (last) {
        // Its hooks may be why an earlier try did not end, and those of a release that never ran often need what is not there.
        const hasHooks = last.status !== 'uninstalling' && !wasNeverDeployed(history)
        if (!hasHooks) print(`the hooks of the Helm release ${order.namespace}/${order.release} are left out`)
        await helm.uninstall(timeoutMs, hasHooks)
      }
      for (const file of files) await rm(file, { force: true })
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }
