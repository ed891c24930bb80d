import { basename, dirname } from 'node:path'
import type { HostFiles } from '../../host/files.ts'
import { deviceConfiguration, networkdFolders, parseUnit, withDropIns, type Unit } from './networkd-files.ts'
import type { DeviceConfiguration } from '../links/configuration.ts'

/** Files of networkd and their drop-ins by path; `masked`: an empty file or a link to /dev/null. */
export type NetworkdFiles = ReadonlyMap<string, { readonly text: string } | 'masked'>

/** Reads all files of networkd's folders that make links or configure them. */
export async function readNetworkdFiles(files: HostFiles): Promise<NetworkdFiles> {
  const found = new Map<string, { text: string } | 'masked'>()
  // On a merged system /lib is /usr/lib, whose files would come twice.
  const isMerged = (await files.link('/lib')) !== undefined
  for (const folder of networkdFolders) {
    if (isMerged && folder.startsWith('/lib/')) continue
    for (const name of await files.names(folder)) {
      const path = `${folder}/${name}`
      if (/\.(network|netdev)$/.test(name)) await add(path)
      else if (/\.(network|netdev)\.d$/.test(name))
        for (const dropIn of await files.names(path))
          if (dropIn.endsWith('.conf')) await add(`${path}/${dropIn}`)
    }
  }
  async function add(path: string) {
    const text = (await files.link(path)) === '/dev/null' ? '' : await files.text(path)
    if (text !== undefined) found.set(path, text === '' ? 'masked' : { text })
  }
  return found
}

/** A file that counts, with its drop-ins merged. */
interface FileInForce {
  readonly path: string
  readonly unit: Unit
  /** Paths of the file and of its drop-ins. */
  readonly files: readonly string[]
}

/** Files of an extension that count, in the order in which networkd looks at them: by name, whatever their folder. */
export function filesInForce(all: NetworkdFiles, extension: 'network' | 'netdev'): readonly FileInForce[] {
  const first = firstOfEach([...all.keys()].filter((path) => path.endsWith(`.${extension}`)))
  return first.flatMap((path) => fileInForce(all, path) ?? [])
}

/** Of files of the same name the one in the folder that wins, in order of the names. */
function firstOfEach(paths: readonly string[]): readonly string[] {
  const rank = (path: string) => networkdFolders.findIndex((folder) => path.startsWith(`${folder}/`))
  const byName = Map.groupBy(paths, (path) => basename(path))
  return [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, same]) => same.toSorted((a, b) => rank(a) - rank(b))[0] ?? '')
}

/** A file with its drop-ins; undefined for one that is masked or not there. */
export function fileInForce(all: NetworkdFiles, path: string): FileInForce | undefined {
  const file = all.get(normal(all, path))
  if (file === undefined || file === 'masked') return undefined
  const folders = networkdFolders.map((folder) => `${folder}/${basename(path)}.d`)
  const dropIns = firstOfEach([...all.keys()].filter((each) => folders.includes(dirname(each)))).flatMap(
    (each) => {
      const dropIn = all.get(each)
      return dropIn === undefined || dropIn === 'masked' ? [] : [{ path: each, unit: parseUnit(dropIn.text) }]
    },
  )
  return {
    path,
    unit: withDropIns(
      parseUnit(file.text),
      dropIns.map(({ unit }) => unit),
    ),
    files: [path, ...dropIns.map((each) => each.path)],
  }
}

/** networkd says /lib on a merged system where the files were read below /usr/lib. */
const normal = (all: NetworkdFiles, path: string) =>
  !all.has(path) && path.startsWith('/lib/') ? `/usr${path}` : path

/** The file that makes a device: the first of them, since networkd ignores a second one of the same name. */
export const deviceFile = (
  all: NetworkdFiles,
  name: string,
): (DeviceConfiguration & { readonly unit: Unit }) | undefined =>
  filesInForce(all, 'netdev')
    .flatMap(({ path, unit }) => {
      const device = deviceConfiguration(unit, path)
      return device === undefined ? [] : [{ ...device, unit }]
    })
    .find((device) => device.name === name)
