import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { apiErrors } from '../../api/codes.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { OpenStore } from '../store/open-store.ts'
import { registryErrors } from './codes.ts'
import { createLists, nameUnknown, type Query } from './lists.ts'
import { createPull, requireDigest, type PullOptions } from './pull.ts'
import { findTagged, hasRepository } from './pull-index.ts'
import { parseRepository, type Repository } from './repository.ts'

export interface RegistryRoutesOptions extends PullOptions {
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
      ...{ method: ['POST', 'PUT', 'PATCH', 'DELETE'], url, config: { access: 'open', audit: false } },
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

  // With a HEAD of its own: that of Fastify says Content-Length: 0.
  const pull = { ...open, method: ['GET', 'HEAD'] }

  app.route<Named<'reference'>>({
    ...{ ...pull, url: '/v2/:name/manifests/:reference' },
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
    ...{ ...pull, url: '/v2/:name/blobs/:digest' },
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
