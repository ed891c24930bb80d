import type { Member } from './archive.ts'

/** A source of a file in the archive. */
export interface Source {
  /** Name of the file in the archive. */
  readonly name: string
  /** Where the content comes from, as shown to the operator: a command, a path of the API. */
  readonly from: string
  readonly read: () => Promise<string>
}

/** A source that was read, or could not be. */
export interface Collected {
  readonly name: string
  readonly from: string
  /** Size of the file; 0 where there is none. */
  readonly bytes: number
  readonly durationMs: number
  /** Why the source could not be read. */
  readonly problem?: string
}

export interface CollectOptions {
  readonly sources: readonly Source[]
  /** Replaces the secrets in a text. */
  readonly mask: (text: string) => string
  /** Folder in the archive. */
  readonly folder: string
  /** Called before each source is read. */
  readonly onBegin: (source: Source) => void
  readonly onEnd: (collected: Collected) => void
}

/** Reads one source after the other. A source that cannot be read has no file in the archive; the others are still read. */
export async function* collect(options: CollectOptions): AsyncGenerator<Member> {
  const { sources, mask, folder, onBegin, onEnd } = options
  for (const source of sources) {
    const { name, from } = source
    onBegin(source)
    const startedAt = performance.now()
    const durationMs = () => Math.round(performance.now() - startedAt)
    let text: string
    try {
      text = mask(await source.read())
    } catch (error) {
      onEnd({ name, from, bytes: 0, durationMs: durationMs(), problem: mask((error as Error).message) })
      continue
    }
    const content = Buffer.from(text)
    yield { name: `${folder}/${name}`, content }
    onEnd({ name, from, bytes: content.length, durationMs: durationMs() })
  }
}
