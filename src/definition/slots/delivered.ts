import { stat } from 'node:fs/promises'
import { basename } from 'node:path'

/** The definition in a published content bundle. */
export interface BundledDefinition {
  readonly bundleUid: string
  /** Name of the bundle. */
  readonly name: string
  /** Milliseconds since 1970, UTC. */
  readonly publishedAt: number
  /** The blob with the archive. */
  readonly file: string
  readonly sizeBytes: number
}

/** A definition that came without an upload of its own: as the installer's file, or in a content bundle. */
export interface Delivered extends Origin {
  readonly file: string
  readonly sizeBytes: number
  readonly fileName: string
}

/** Where a definition came from, as its `source` in the slot says. */
export interface Origin {
  readonly kind: 'file' | 'bundle'
  /** Identifies the delivered state, and the version of the daemon that examined it. */
  readonly source: string
  /** When it came, milliseconds since 1970, UTC: the time of the file, or the publication of the bundle. */
  readonly at: number
  /** Empty for a file. */
  readonly bundleUid: string
}

/**
 * The definition that an installer placed.
 * @returns undefined if there is no file. @throws the system's errors; an Error if it is not a regular file
 */
export async function deliveredByFile(file: string, version: string): Promise<Delivered | undefined> {
  const found = await stat(file, { bigint: true }).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
  })
  if (!found) return undefined
  if (!found.isFile()) throw new Error(`${file} is not a regular file`)
  const { size, mtimeNs, ctimeNs, ino } = found
  // All that changes with the content of the file.
  const origin = originOf(`${size} ${mtimeNs} ${ctimeNs} ${ino} ${version}`)
  return { ...origin, file, sizeBytes: Number(size), fileName: basename(file) }
}

/** The definition of a bundle, to be examined by this version of the daemon. */
export function deliveredByBundle(
  { bundleUid, name, publishedAt, file, sizeBytes }: BundledDefinition,
  version: string,
): Delivered {
  const origin = originOf(`${bundleWord} ${bundleUid} ${publishedAt} ${version}`)
  return { ...origin, file, sizeBytes, fileName: name }
}

const bundleWord = 'bundle'

/** Reads the `source` of a definition that was delivered. */
export function originOf(source: string): Origin {
  const [first, second = '', third] = source.split(' ')
  return first === bundleWord
    ? { kind: 'bundle', source, at: Number(third), bundleUid: second }
    : { kind: 'file', source, at: Number(BigInt(second) / 1_000_000n), bundleUid: '' }
}
