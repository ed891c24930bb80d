import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
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
  /** Where `network-trial` has what it found before the first change of each file. */
  readonly stateFolder: string
  /** Names of the files in a folder; none where it is not there. */
  readonly names?: (folder: string) => Promise<readonly string[]>
  /** The bytes of a file; undefined where it is not there. */
  readonly read?: (file: string) => Promise<Buffer | undefined>
}

/** A file of another program than networkd that a change was written into. */
interface Original {
  readonly path: string
  /** Whether there was such a file. */
  readonly wasThere: boolean
  /** `ours`: as it was written last, so that it is put back. `first`: as it was found. `other`: another program, or an administrator, has changed it since; it stays. */
  readonly state: 'ours' | 'first' | 'other'
}

const namesIn = (folder: string) => readdir(folder).catch((): string[] => [])
const readIn = (file: string) => readFile(file).catch((): undefined => undefined)

/**
 * What a reset takes away of the network: the files that edgehostd keeps for links of networkd, and the bonds, bridges and VLANs that they make. The
 * files of an administrator, which they stood before, count again at once. Files of netplan, NetworkManager and ifupdown are as they were found
 * before the first change, unless another program, or an administrator, has changed them since.
 */
export function createNetworkResetPart(options: NetworkResetOptions): ResetPart {
  const { verbs, trials, stateFolder, names = namesIn, read = readIn } = options
  const originals = join(stateFolder, 'originals')
  const found = async () =>
    (
      await Promise.all(
        folders.map(async (folder) =>
          (await names(folder)).filter((name) => ours.test(name)).map((name) => join(folder, name)),
        ),
      )
    ).flat()

  const markOf = async (file: string) => {
    const bytes = await read(file)
    return bytes === undefined ? 'absent' : hash('sha256', bytes, 'hex')
  }
  async function readOriginals(): Promise<readonly Original[]> {
    const all: Original[] = []
    for (const name of await names(originals)) {
      const text = async (of: string) => (await read(join(originals, name, of)))?.toString().trim()
      const [path, first, mark] = await Promise.all([text('path'), text('first'), text('mark')])
      if (path === undefined || first === undefined || mark === undefined) continue
      const present = await markOf(path)
      const state = present === first ? 'first' : present === mark ? 'ours' : 'other'
      all.push({ path, wasThere: first !== 'absent', state })
    }
    return all.toSorted((one, other) => (one.path < other.path ? -1 : 1))
  }
  /** Links whose files are known as they were found. */
  async function knownLinks(): Promise<ReadonlySet<string>> {
    const texts = await Promise.all(
      Object.keys(backendNames).map((backend) => read(join(originals, `links-${backend}`))),
    )
    return new Set(texts.flatMap((text) => text?.toString().split('\n').filter(Boolean) ?? []))
  }

  return {
    describe: async () => [
      ...(await found()).map((path) => `${path}: the files of an administrator count again, or none`),
      ...(await readOriginals())
        .filter(({ state }) => state === 'ours')
        .map(({ path, wasThere }) =>
          wasThere
            ? `${path}: it is again as edgehostd found it`
            : `${path}: it goes, since edgehostd has made it`,
        ),
    ],
    stays: async () => [
      ...(await readOriginals())
        .filter(({ state }) => state === 'other')
        .map(({ path }) => `${path}: others have changed it since edgehostd did`),
      ...editedElsewhere(trials.list(), await knownLinks()),
    ],
    async clear() {
      // It is confirmed or taken back first; both end by themselves.
      if (trials.open() !== undefined) return false
      // Also without files: a wipe that was cut off has its rest in the program.
      await verbs.call(removeNetwork, { folder: stateFolder }, 'service')
      return true
    },
  }
}

/**
 * Links of other programs whose files have confirmed changes that nothing is known of, as those of an earlier version; a line for each. Pure.
 * @param known links whose files are known as they were found
 */
export function editedElsewhere(
  changes: readonly StoredChange[],
  known: ReadonlySet<string>,
): readonly string[] {
  const lines = changes
    .filter(({ backend, state }) => backend !== 'networkd' && state === 'confirmed')
    .flatMap(({ backend, links }) =>
      links
        .filter((link) => !known.has(link))
        .map((link) => `${link} as it stands in the files of ${backendNames[backend]}`),
    )
  return [...new Set(lines)].toSorted()
}
