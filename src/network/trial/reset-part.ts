import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ResetPart } from '../../root/room.ts'
import type { Verbs } from '../../verbs/call.ts'
import { backendNames } from '../links/owners.ts'
import type { StoredChange } from './store.ts'
import type { Trials } from './trials.ts'
import { removeNetwork } from './verbs.ts'

// Where our files of networkd are kept, and where a trial has them until the next boot; `network-trial wipe` takes them from both.
const folders = ['/usr/local/lib/systemd/network', '/run/systemd/network']
const ours = /^05-edgehostd-.+\.(network|netdev)$/

interface NetworkResetOptions {
  readonly verbs: Verbs
  readonly trials: Pick<Trials, 'list' | 'open'>
  /** Names of the files in a folder; none where it is not there. */
  readonly names?: (folder: string) => Promise<readonly string[]>
}

const namesIn = (folder: string) => readdir(folder).catch((): string[] => [])

/**
 * What a reset takes away of the network: the files that edgehostd keeps for links of networkd, and the bonds, bridges and VLANs that they make.
 * The files of an administrator, which they stood before, count again at once. What was changed of links of other programs stands in the files
 * of these, and stays.
 */
export function createNetworkResetPart({ verbs, trials, names = namesIn }: NetworkResetOptions): ResetPart {
  const found = async () =>
    (
      await Promise.all(
        folders.map(async (folder) =>
          (await names(folder)).filter((name) => ours.test(name)).map((name) => join(folder, name)),
        ),
      )
    ).flat()

  return {
    describe: async () =>
      (await found()).map((path) => `${path}: the files of an administrator count again, or none`),
    stays: async () => editedElsewhere(trials.list()),
    async clear() {
      // It is confirmed or taken back first; both end by themselves.
      if (trials.open() !== undefined) return false
      // Also without files: a wipe that was cut off has its rest in the program.
      await verbs.call(removeNetwork, {}, 'service')
      return true
    },
  }
}

/** Links of other programs whose files have confirmed changes, a line for each. Pure. */
export function editedElsewhere(changes: readonly StoredChange[]): readonly string[] {
  const lines = changes
    .filter(({ backend, state }) => backend !== 'networkd' && state === 'confirmed')
    .flatMap(({ backend, links }) =>
      links.map((link) => `${link} as it stands in the files of ${backendNames[backend]}`),
    )
  return [...new Set(lines)].toSorted()
}
