import { type MemoryField, listInMemory } from '../lists/memory.ts'
import type { ListResource } from '../lists/resource.ts'
import { type ImageRow, joinImages } from './join.ts'
import type { Reading, Readings } from './readings.ts'
import { HostImage, type ImageSource } from './schemas.ts'
import { createSharedRun } from '../base/shared-run.ts'
import type { StoredImages } from '../content/reads/stored-images.ts'
import { AppError } from '../errors/app-error.ts'
import type { Page } from '../lists/page.ts'
import type { ListQuery } from '../lists/query.ts'

/** An image of this host; its locations lead to the readings of their runtimes. */
type Row = ImageRow<Reading>

const runtimesOf = ({ isStored, locations }: Row) => [
  ...(isStored ? ['store'] : []),
  ...locations.map(({ source }) => source.runtime),
]

/** Fields for queries of the list of images. A path into an array wants one of its elements. */
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
      type: 'text',
      isOrdered: false,
      read: ({ platforms }) => platforms.map(({ architecture }) => architecture),
    },
    'locations.runtime': { type: 'text', isOrdered: false, read: runtimesOf },
    'locations.namespace': {
      type: 'text',
      isOrdered: false,
      read: ({ locations }) => locations.map(({ namespace }) => namespace),
    },
    canBePulledHere: { type: 'boolean', read: ({ isPullable }) => isPullable },
  },
  defaultOrder: [{ path: 'title', direction: 1 }],
  item: HostImage,
}

/** An image as the API shows it. */
function imageView(row: Row): HostImage {
  const { id, digest, imageId, title, names, sizeBytes, platforms, locations, isStored, isPullable } = row
  return {
    id,
    title,
    digest,
    names: names.map((name) => ({ ...name })),
    sizeBytes,
    ...(imageId === '' ? {} : { imageId }),
    platforms: platforms.map((platform) => ({ ...platform })),
    locations: [
      ...(isStored ? [{ runtime: 'store' as const, endpoint: '', namespace: '' }] : []),
      ...locations.map(({ source: { runtime, endpoint, readAt }, namespace }) => ({
        runtime,
        endpoint,
        namespace,
        ...(readAt === undefined ? {} : { readAt: new Date(readAt).toISOString() }),
      })),
    ],
    canBePulledHere: isPullable,
  }
}

/** All images of this host: in the store and in the runtimes. */
export interface Images {
  /** @param isFresh whether the runtimes are read again before */
  list(query: ListQuery, isFresh: boolean): Promise<Page<HostImage> & { sources: ImageSource[] }>
  stop(): Promise<void>
}

interface ImagesOptions {
  readonly readings: Readings
  readonly stored: StoredImages
}

export function createImages({ readings, stored }: ImagesOptions): Images {
  /** Rows, and their sources. */
  let joined: {
    readonly mark: string
    readonly readings: readonly Reading[]
    readonly rows: readonly Row[]
  } = {
    mark: '',
    readings: [],
    rows: [],
  }
  let problem: string | undefined

  const joins = createSharedRun(async () => {
    const current = readings.current()
    const seen = current.map((source) => ({ source, images: source.images }))
    try {
      const mark = await stored.mark()
      problem = undefined
      if (joined.mark === mark && joined.readings === current) return
      joined = { mark, readings: current, rows: await joinImages(stored.pages(), seen) }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      // The runtimes are listed also while the content cannot be read.
      problem = error.message
      joined = { mark: '', readings: current, rows: await joinImages<Reading>([], seen) }
    }
  })

  return {
    async list(query, isFresh) {
      if (isFresh || !readings.isRead()) await readings.refresh()
      await joins.run()
      const { rows, readings: used } = joined
      return { ...listInMemory(rows, query, imageList, imageView), sources: sourcesOf(rows, used, problem) }
    },
    async stop() {
      await readings.stop()
      await joins.ended()
    },
  }
}

function sourcesOf(
  rows: readonly Row[],
  readings: readonly Reading[],
  problem: string | undefined,
): ImageSource[] {
  const store: ImageSource = {
    runtime: 'store',
    endpoint: '',
    state: problem === undefined ? 'read' : 'failed',
    images: rows.filter(({ isStored }) => isStored).length,
    ...(problem === undefined ? {} : { message: problem }),
  }
  return [
    store,
    ...readings.flatMap(({ runtime, endpoint, state, images, readAt, message }) =>
      state === 'absent'
        ? []
        : [
            {
              runtime,
              endpoint,
              state,
              images: images.length,
              ...(readAt === undefined ? {} : { readAt: new Date(readAt).toISOString() }),
              ...(message === undefined ? {} : { message }),
            },
          ],
    ),
  ]
}
