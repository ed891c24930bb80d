import type { MemoryField } from '../lists/memory.ts'
import type { ListResource } from '../lists/resource.ts'
import type { ImageRow } from './join.ts'
import type { Reading } from './readings.ts'
import { HostImage } from './schemas.ts'

/** An image of this host; its locations lead to the readings of their runtimes. */
export type Row = ImageRow<Reading>

const runtimesOf = ({ isStored, locations }: Row) => [
  ...(isStored ? ['store'] : []),
  ...locations.map(({ source }) => source.runtime),
]

/** What queries of the list of images may name. A path into an array wants one of its elements. */
export const imageList: ListResource<MemoryField<Row>> = {
  name: 'host-images',
  key: 'id',
  fields: {
    id: { type: 'text', read: ({ id }) => id },
    title: { type: 'text', read: ({ title }) => title },
    digest: { type: 'text', isOrdered: false, read: ({ digest }) => digest },
    imageId: { type: 'text', isOrdered: false, read: ({ imageId }) => imageId },
    'names.name': { type: 'text', isOrdered: false, read: ({ names }) => names.map(({ name }) => name) },
    sizeBytes: { type: 'integer', read: ({ sizeBytes }) => sizeBytes },
    'platforms.architecture': {
      ...{ type: 'text', isOrdered: false },
      read: ({ platforms }) => platforms.map(({ architecture }) => architecture),
    },
    'locations.runtime': { type: 'text', isOrdered: false, read: runtimesOf },
    'locations.namespace': {
      ...{ type: 'text', isOrdered: false },
      read: ({ locations }) => locations.map(({ namespace }) => namespace),
    },
    canBePulledHere: { type: 'boolean', read: ({ isPullable }) => isPullable },
  },
  defaultOrder: [{ path: 'title', direction: 1 }],
  item: HostImage,
}

/** An image as the API shows it. */
export function imageView(row: Row): HostImage {
  const { id, digest, imageId, title, names, sizeBytes, platforms, locations, isStored, isPullable } = row
  return {
    ...{ id, title, digest, names: names.map((name) => ({ ...name })), sizeBytes },
    ...(imageId === '' ? {} : { imageId }),
    platforms: platforms.map((platform) => ({ ...platform })),
    locations: [
      ...(isStored ? [{ runtime: 'store' as const, endpoint: '', namespace: '' }] : []),
      ...locations.map(({ source: { runtime, endpoint, readAt }, namespace }) => ({
        ...{ runtime, endpoint, namespace },
        ...(readAt === undefined ? {} : { readAt: new Date(readAt).toISOString() }),
      })),
    ],
    canBePulledHere: isPullable,
  }
}
