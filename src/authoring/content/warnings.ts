import type { Entry } from '../../content/format/entry.ts'
import { plural } from '../../ctl/text.ts'
import { megabytes } from '../contents.ts'

/** Something about a bundle that is allowed, and that its author may not have meant. */
export interface Warning {
  readonly code: 'ImageUnnamed' | 'NameTwice' | 'ArchitectureMissing' | 'BlobsUnnamed'
  readonly message: string
}

export interface WarningOptions {
  readonly entries: readonly Entry[]
  /** Of all images and programs of the bundle. */
  readonly architectures: readonly string[]
  /** Blobs that nothing names. */
  readonly unnamed: { readonly count: number; readonly sizeBytes: number }
}

/** Name of an entry with tag or version, for people; its digest if it has none. */
export function titleOf({ name, tag, title, version, digest }: Entry): string {
  if (name !== undefined) return tag === undefined ? name : `${name}:${tag}`
  if (title !== undefined) return version === undefined ? title : `${title} ${version}`
  return digest
}

/** What an author should know before the bundle is carried to a host. */
export function findWarnings({ entries, architectures, unnamed }: WarningOptions): Warning[] {
  const warnings: Warning[] = []
  const digests = new Map<string, string>()
  for (const entry of entries) {
    const { kind, digest, name, title, nameProblem } = entry
    const shown = titleOf(entry)
    if (kind === 'image' && name === undefined)
      warnings.push({
        code: 'ImageUnnamed',
        message: `the image ${digest} has no name${nameProblem === undefined ? '' : ` (${nameProblem})`}; it can be pulled by its digest only. With a name: skopeo copy oci:DIR:TAG oci:OTHER-DIR:NAME:TAG`,
      })
    const key = `${name === undefined ? kind : 'image'} ${shown}`
    const other = digests.get(key)
    if (other !== undefined && other !== digest)
      warnings.push({
        code: 'NameTwice',
        message: `${shown} stands for ${other} and for ${digest}; only one of them can be pulled by this name`,
      })
    if (name !== undefined || title !== undefined) digests.set(key, digest)
    const carried = new Set(
      entry.platforms.filter(({ isCarried }) => isCarried).map((each) => each.architecture),
    )
    const missing = architectures.filter((each) => !carried.has(each))
    if ((kind === 'image' || kind === 'program') && carried.size > 0 && missing.length > 0)
      warnings.push({
        code: 'ArchitectureMissing',
        message: `${shown} is here for ${[...carried].join(', ')}, but not for ${missing.join(', ')}, for which other parts of the bundle are`,
      })
  }
  if (unnamed.count > 0)
    warnings.push({
      code: 'BlobsUnnamed',
      message: `${plural(unnamed.count, 'blob')} of ${megabytes(unnamed.sizeBytes)} ${unnamed.count === 1 ? 'is' : 'are'} named by nothing in index.json; the host does not keep them`,
    })
  return warnings
}
