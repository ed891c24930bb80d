/** A line of mountinfo, proc_pid_mountinfo(5), unescaped. */
export interface Mount {
  readonly id: string
  /** Id of the mount that it is mounted on; the first one names itself, or one that is not in the table. */
  readonly parent: string
  /** `major:minor` of the file system. */
  readonly device: string
  /** The folder of the file system that is mounted; `/` is the whole file system. */
  readonly root: string
  readonly mountPoint: string
  readonly fileSystemType: string
  /** The mounted device, for example `/dev/sda1`; free text. */
  readonly source: string
  /** Options of the file system, separated by commas and still escaped. */
  readonly options: string
}

// Fields after the mount options are optional and end with a lone hyphen.
const line = /^(\S+) (\S+) (\S+) (\S+) (\S+) .*? - (\S+) (\S*) ?(\S*)$/gm

/**
 * Parses mountinfo of a process. A cluster node has hundreds of lines, so only fields that are used are parsed. Names of folders need not be
 * UTF-8: of a text that was read as Latin-1 each character of a name is one byte.
 */
export function parseMountinfo(text: string): readonly Mount[] {
  return Array.from(
    text.matchAll(line),
    ([
      ,
      id = '',
      parent = '',
      device = '',
      root = '',
      mountPoint = '',
      fileSystemType = '',
      source = '',
      options = '',
    ]) => ({
      id,
      parent,
      device,
      root: unescapeOctal(root),
      mountPoint: unescapeOctal(mountPoint),
      fileSystemType,
      source: unescapeOctal(source),
      options,
    }),
  )
}

/** Space, tab, newline, backslash and hash are escaped as three octal digits. */
export function unescapeOctal(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)))
}

const isAbove = ({ mountPoint }: Mount, path: string): boolean =>
  path.startsWith(mountPoint) &&
  (mountPoint === '/' || path.length === mountPoint.length || path[mountPoint.length] === '/')

/** Mounts by the mount that they are mounted on. */
export type MountTree = ReadonlyMap<string | undefined, readonly Mount[]>

/** The tree of a table; those on a mount that is not in the table are below `undefined`. */
export function mountTree(mounts: readonly Mount[]): MountTree {
  const ids = new Set(mounts.map(({ id }) => id))
  return Map.groupBy(mounts, ({ id, parent }) => (id !== parent && ids.has(parent) ? parent : undefined))
}

/**
 * The mounts that the kernel passes on its way to a path, from that of `/`: the last one has the path. A mount below a folder on which another
 * one was mounted later is in the table, and is not passed.
 */
export function mountsToward(tree: MountTree, path: string): readonly Mount[] {
  const passed: Mount[] = []
  for (let on: string | undefined; ;) {
    // On one mount there is at most one at a folder: the next one there is mounted on that one.
    const [next, ...others] = (tree.get(on) ?? []).filter((mount) => isAbove(mount, path))
    if (next === undefined) return passed
    const first = others.reduce(
      (nearest, each) => (each.mountPoint.length < nearest.mountPoint.length ? each : nearest),
      next,
    )
    passed.push(first)
    on = first.id
  }
}

/** The mount that a path lies in. */
export const mountOf = (mounts: readonly Mount[], path: string): Mount | undefined =>
  mountsToward(mountTree(mounts), path).at(-1)
