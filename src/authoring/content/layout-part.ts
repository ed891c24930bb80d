import type { EntryDescriptor, Part } from './part.ts'
import { describeLayout, readLayout, type LayoutSource } from './layout.ts'

/**
 * Every image that the index.json of a layout lists, with its annotations and all that the layout has of it.
 * @param place the option with its value
 * @throws what `readLayout` throws, and AppError for what a host would refuse
 */
export async function readLayoutPart(source: LayoutSource, place: string): Promise<Part> {
  const layout = await readLayout(source)
  describeLayout(layout)
  const { index, walk, held } = layout
  const { manifests } = JSON.parse(Buffer.from(index).toString()) as { manifests: EntryDescriptor[] }
  const blobs = [...held].flatMap(([digest, { sizeBytes, from }]) =>
    from === undefined
      ? []
      : [
          {
            digest,
            sizeBytes,
            from,
            place: `${place}, ${digest}`,
            isDocument: walk.needs.get(digest)?.kind === 'document',
          },
        ],
  )
  return { place, entries: manifests, blobs }
}
