import type { Member } from './archive.ts'

/** Something that goes into the archive. */
export interface Source {
  /** Name of its file there. */
  readonly name: string
  /** Where it comes from, for people: a command, a path of the API. */
  readonly from: string
  readonly read: () => Promise<string>
}

/** What became of a source. */
export interface Collected {
  readonly name: string
  readonly from: string
  /** Of the file; 0 without one. */
  readonly bytes: number
  readonly durationMs: number
  /** Why there is no file. */
  readonly problem?: string
}

export interface CollectOptions {
  readonly sources: readonly Source[]
  /** Takes secrets out of a text. */
  readonly mask: (text: string) => string
  /** Folder in the archive. */
  readonly folder: string
  /** Told before each source is read. */
  readonly onBegin: (source: Source) => void
  readonly onEnd: (collected: Collected) => void
}

/** Reads one source after the other. One that cannot be read leaves no file and stops none of the others. */
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
