import type { FastifyReply, FastifyRequest, FastifyInstance } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import { mediaTypes } from '../format/media-types.ts'
import type { OpenStore } from '../store/open-store.ts'
import { registryErrors } from '../codes.ts'
import {
  findReferrers,
  hasRepository,
  listRepositories,
  listTags,
  type ReferringBlob,
  type Repository,
  findBlob,
  type PulledBlob,
  findTagged,
  parseRepository,
} from './pull-index.ts'
import type { FileHandle } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { askedPart, ReadFailed, type FileSender } from '../../api/send-file.ts'
import { matchesEtag } from '../../api/etag.ts'
import type { ErrorKind } from '../../errors/define-errors.ts'
import { FileRefused, openRegularFile } from '../../system/regular-file.ts'
import { hexOf } from '../store/folder.ts'
import type { SuspectBlobs } from './damage.ts'
import { apiErrors } from '../../api/codes.ts'
import { generalErrors } from '../../errors/codes.ts'

/** Query parameters as they arrive: a parameter that is repeated is a list. */
type Query = Readonly<Record<string, string | readonly string[] | undefined>>

const mostItems = 1_000
// Of an index of referrers: a client may refuse a larger one, and each row has its annotations.
const mostReferrers = 250
const mostReferrerBytes = 1_048_576

const nameUnknown = () =>
  new AppError(
    registryErrors.NameUnknown,
    'no bundle of this host has an image, chart or artifact of this name; upload a bundle that has it',
  )

/**
 * The lists of the registry, with the pages of the distribution specification: `n`, `last`, and a `Link` to the next page. A page
 * has at most 1,000 items.
 */
function createLists(store: OpenStore) {
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
    /** An index of the referrers of a digest; empty for one that is not here. */
    referrers(reply: FastifyReply, name: string, subject: string, query: Query): object {
      const artifactType = textOf(query.artifactType)
      if (artifactType !== undefined) void reply.header('oci-filters-applied', 'artifactType')
      const manifests: object[] = []
      let [seen, bytes, last] = [0, 0, '']
      for (const blob of findReferrers(store.index().database, subject, textOf(query.last) ?? '')) {
        // Referrers of other types count too: a page may have fewer.
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
  mediaType,
  digest: `sha256:${hex}`,
  size: sizeBytes,
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

interface PullOptions {
  /** Open. */
  readonly store: OpenStore
  readonly sender: FileSender
  readonly suspects: SuspectBlobs
}

/** Kind of a pull: a blob as bytes, or an index or manifest with its media type. */
type Pulled = 'blob' | 'manifest'

/** A digest of any algorithm: https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md#digests */
const digestForm = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/
const sha256Form = /^sha256:[0-9a-f]{64}$/

// Of a file that is gone, of a damaged disk, and of links that lead nowhere.
const damageCodes: ReadonlySet<string> = new Set(['ENOENT', 'EIO', 'EUCLEAN', 'ELOOP', 'ENOTDIR'])

/** @throws AppError DigestInvalid */
function requireDigest(digest: string): void {
  if (digestForm.test(digest) && (!digest.startsWith('sha256:') || sha256Form.test(digest))) return
  throw new AppError(
    registryErrors.DigestInvalid,
    'the digest must be sha256: and 64 hexadecimal digits in lower case',
  )
}

/** The content of a digest, as the reply to GET and HEAD. */
function createPull({ store, sender, suspects }: PullOptions) {
  const unknown: Readonly<Record<Pulled, ErrorKind>> = {
    blob: registryErrors.BlobUnknown,
    manifest: registryErrors.ManifestUnknown,
  }

  /** @throws AppError BlobUnknown or ManifestUnknown */
  function find(digest: string, what: Pulled): PulledBlob {
    const blob = sha256Form.test(digest) ? findBlob(store.index().database, hexOf(digest)) : undefined
    if (blob && (what === 'blob' || blob.mediaType !== undefined)) {
      if (blob.isDamaged) throw damaged(what)
      return blob
    }
    throw new AppError(
      unknown[what],
      blob
        ? 'this digest names a layer or configuration, not a manifest'
        : `no bundle of this host has this ${what}; upload a bundle that has it`,
    )
  }

  const damaged = (what: Pulled) =>
    new AppError(
      unknown[what],
      `the ${what} is damaged on the disk of this host and not served; upload a bundle that has it`,
    )

  function refuse({ hex }: PulledBlob, what: Pulled, reason: string): AppError {
    // A bundle that was deleted meanwhile is no damage.
    if (findBlob(store.index().database, hex)) suspects.report(hex, reason)
    return damaged(what)
  }

  /** Opens the file of a blob. @throws AppError if it is missing, has another size, or is not what its digest says */
  async function openWhole(blob: PulledBlob, what: Pulled, isRead: boolean): Promise<FileHandle> {
    const { hex, sizeBytes } = blob
    const file = await openRegularFile(join(store.blobs, hex)).catch((error: unknown) => {
      if (error instanceof FileRefused) throw refuse(blob, what, `its file ${error.reason}`)
      const { code = '' } = error as NodeJS.ErrnoException
      // Other errors say nothing of this file: too many files are open, for example.
      throw damageCodes.has(code) ? refuse(blob, what, `its file cannot be opened: ${code}`) : error
    })
    try {
      const { size } = await file.stat()
      if (size !== sizeBytes)
        throw refuse(blob, what, `its file has ${size} bytes and should have ${sizeBytes}`)
      // A client that pulls by tag could not notice it.
      if (what === 'manifest' && isRead && (await sumOf(file)) !== hex)
        throw refuse(blob, what, 'its content was altered')
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async function answer(request: FastifyRequest, reply: FastifyReply, digest: string, what: Pulled) {
    const blob = find(digest, what)
    const { sizeBytes, mediaType } = blob
    const etag = `"${digest}"`
    const isRead = request.method === 'GET'
    const headers = { etag, 'docker-content-digest': digest }
    if (matchesEtag(request, etag)) return reply.headers(headers).code(304).send()
    const type = (what === 'manifest' ? mediaType : undefined) ?? 'application/octet-stream'
    const part = askedPart(request, reply, {
      etag,
      sizeBytes,
      headers: { ...headers, 'content-type': type },
    })
    const file = await openWhole(blob, what, isRead)
    try {
      if (isRead) await sender.send({ ...part, file, begin: () => part.begin().hijack() })
      else void part.begin().send()
    } catch (error) {
      if (!(error instanceof ReadFailed)) throw error
      const refusal = refuse(blob, what, error.message)
      if (!reply.sent) throw refusal
    } finally {
      await file.close()
    }
    return reply
  }

  return { answer }
}

async function sumOf(file: FileHandle): Promise<string> {
  const sum = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(65_536)
  for (let at = 0; ;) {
    // A part that cannot be read ends the sum, which then differs.
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at).catch(() => ({ bytesRead: 0 }))
    if (bytesRead === 0) return sum.digest('hex')
    sum.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
}

interface RegistryRoutesOptions extends PullOptions {
  readonly store: OpenStore
  /** Whether a request may pull. */
  readonly isAllowed: (request: FastifyRequest) => boolean
}

interface Named<More extends string = never> {
  Params: Record<'name' | More, string>
  Querystring: Query
}

/**
 * The pull half of https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md. Only the paths of pulls exist: a push
 * gets 405, since a bundle is published as a whole.
 */
export function addRegistryRoutes(app: FastifyInstance, options: RegistryRoutesOptions): void {
  const { store, isAllowed } = options
  const { answer } = createPull(options)
  const lists = createLists(store)

  const open = {
    config: { access: 'open' as const, asksForCredentials: true },
    onRequest: async (request: FastifyRequest, reply: FastifyReply) => {
      if (isAllowed(request)) return
      void reply.header('www-authenticate', 'Basic realm="edgehostd"')
      throw new AppError(
        generalErrors.Unauthenticated,
        'the registry of this host needs its user name and password; edgehostctl content registry config writes them into the files of each tool',
      )
    },
  }

  for (const path of ['/v2', '/v2/']) app.get(path, open, async () => ({}))

  // Pushes and deletions, so that the client of a push can say why it failed.
  for (const [url, allow] of [
    ['/v2/:name/blobs/uploads/', ''],
    ['/v2/:name/blobs/:digest', 'GET, HEAD'],
    ['/v2/:name/manifests/:reference', 'GET, HEAD'],
  ] as const)
    app.route({
      method: ['POST', 'PUT', 'PATCH', 'DELETE'],
      url,
      config: { access: 'open', audit: false },
      async onRequest(_request, reply) {
        void reply.header('allow', allow)
        throw new AppError(
          apiErrors.MethodNotAllowed,
          'this registry takes no pushes: bring content in bundles, with edgehostctl content build and edgehostctl content upload',
        )
      },
      handler: async () => undefined,
    })

  app.get<{ Querystring: Query }>('/v2/_catalog', open, async ({ query }, reply) => {
    await store.open()
    return lists.catalog(reply, query)
  })

  app.get<Named>('/v2/:name/tags/list', open, async (request, reply) => {
    const repository = repositoryOf(request)
    await store.open()
    return lists.tags(reply, request.params.name, repository, request.query)
  })

  // With a HEAD of its own: Fastify's says Content-Length: 0.
  const pull = { ...open, method: ['GET', 'HEAD'] }

  app.route<Named<'reference'>>({
    ...pull,
    url: '/v2/:name/manifests/:reference',
    async handler(request, reply) {
      const repository = repositoryOf(request)
      const { reference } = request.params
      const isDigest = reference.includes(':')
      if (isDigest) requireDigest(reference)
      await store.open()
      return answer(request, reply, isDigest ? reference : digestOfTag(repository, reference), 'manifest')
    },
  })

  app.route<Named<'digest'>>({
    ...pull,
    url: '/v2/:name/blobs/:digest',
    async handler(request, reply) {
      repositoryOf(request)
      requireDigest(request.params.digest)
      await store.open()
      return answer(request, reply, request.params.digest, 'blob')
    },
  })

  app.get<Named<'digest'>>('/v2/:name/referrers/:digest', open, async (request, reply) => {
    repositoryOf(request)
    const { name, digest } = request.params
    requireDigest(digest)
    await store.open()
    // As bytes: Fastify would add a charset to the media type.
    return Buffer.from(JSON.stringify(lists.referrers(reply, name, digest, request.query)))
  })

  function digestOfTag(repository: Repository, tag: string): string {
    const { database } = store.index()
    const digest = findTagged(database, repository, tag)
    if (digest !== undefined) return digest
    if (!hasRepository(database, repository)) throw nameUnknown()
    throw new AppError(
      registryErrors.ManifestUnknown,
      'this host has the image, but not with this tag; upload a bundle that has it',
    )
  }
}

/** @throws AppError NameInvalid */
function repositoryOf({ params: { name }, query }: FastifyRequest<Named>): Repository {
  const { ns } = query
  const repository = parseRepository(name, typeof ns === 'object' ? ns[0] : ns)
  if (repository) return repository
  throw new AppError(
    registryErrors.NameInvalid,
    'the name in the path must be small letters and digits, separated by /, ., _ and -',
  )
}
