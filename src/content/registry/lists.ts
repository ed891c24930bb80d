import type { FastifyReply } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import { mediaTypes } from '../format/media-types.ts'
import type { OpenStore } from '../store/open-store.ts'
import { registryErrors } from './codes.ts'
import { findReferrers, hasRepository, listRepositories, listTags, type ReferringBlob } from './pull-index.ts'
import type { Repository } from './repository.ts'

/** Query parameters as they arrive: a parameter that is repeated is a list. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>

const mostItems = 1_000
// Of an index of referrers: a client may refuse a larger one, and each row has its annotations.
const mostReferrers = 250
const mostReferrerBytes = 1_048_576

export const nameUnknown = () =>
  new AppError(
    registryErrors.NameUnknown,
    'no bundle of this host has an image, chart or artifact of this name; upload a bundle that has it',
  )

/**
 * The lists of the registry, with the pages of the distribution specification: `n`, `last`, and a `Link` to the next page. A page
 * has at most 1,000 items.
 */
export function createLists(store: OpenStore) {
  /** @param path of the list */
  function page(
    reply: FastifyReply,
    query: Query,
    path: string,
    found: readonly string[],
    limit: number,
  ): string[] {
    const items = found.slice(0, limit)
    const last = items.at(-1)
    if (found.length > limit && last !== undefined) linkNext(reply, path, { n: textOf(query.n), last })
    return items
  }

  return {
    tags(reply: FastifyReply, name: string, repository: Repository, query: Query): object {
      const { database } = store.index()
      const limit = limitOf(query)
      const found = listTags(database, repository, textOf(query.last) ?? '', limit + 1)
      if (found.length === 0 && !hasRepository(database, repository)) throw nameUnknown()
      return { name, tags: page(reply, query, `/v2/${name}/tags/list`, found, limit) }
    },
    async catalog(reply: FastifyReply, query: Query): Promise<object> {
      const limit = limitOf(query)
      const found = await listRepositories(store.index().database, textOf(query.last) ?? '', limit + 1)
      return { repositories: page(reply, query, '/v2/_catalog', found, limit) }
    },
    /** An index of what belongs to a digest; empty for one that is not here. */
    referrers(reply: FastifyReply, name: string, subject: string, query: Query): object {
      const artifactType = textOf(query.artifactType)
      if (artifactType !== undefined) void reply.header('oci-filters-applied', 'artifactType')
      const manifests: object[] = []
      let [seen, bytes, last] = [0, 0, '']
      for (const blob of findReferrers(store.index().database, subject, textOf(query.last) ?? '')) {
        // Those of other types count too: a page may have fewer.
        if (bytes > mostReferrerBytes || seen === mostReferrers) {
          linkNext(reply, `/v2/${name}/referrers/${subject}`, { artifactType, last })
          break
        }
        last = blob.hex
        seen += 1
        if (artifactType !== undefined && blob.artifactType !== artifactType) continue
        const descriptor = descriptorOf(blob)
        manifests.push(descriptor)
        bytes += JSON.stringify(descriptor).length
      }
      void reply.type(mediaTypes.index)
      return { schemaVersion: 2, mediaType: mediaTypes.index, manifests }
    },
  }
}

const descriptorOf = ({ hex, sizeBytes, mediaType, artifactType, annotations }: ReferringBlob) => ({
  ...{ mediaType, digest: `sha256:${hex}`, size: sizeBytes },
  ...(artifactType === undefined ? {} : { artifactType }),
  ...(annotations === undefined ? {} : { annotations: JSON.parse(annotations) as object }),
})

function linkNext(
  reply: FastifyReply,
  path: string,
  query: Readonly<Record<string, string | undefined>>,
): void {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
  void reply.header('link', `<${path}?${new URLSearchParams(given).toString()}>; rel="next"`)
}

/** @throws AppError PaginationNumberInvalid */
function limitOf({ n }: Query): number {
  const text = textOf(n)
  if (text === undefined) return mostItems
  if (!/^\d{1,9}$/.test(text))
    throw new AppError(registryErrors.PaginationNumberInvalid, 'n must be a whole number')
  return Math.min(Number(text), mostItems)
}

/** The value of a parameter, of several the first; undefined for an empty one. */
const textOf = (value: Query[string]): string | undefined =>
  (typeof value === 'object' ? value[0] : value) || undefined
