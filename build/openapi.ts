/** The OpenAPI document of what the routes declare. */
import { STATUS_CODES } from 'node:http'
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { lifecycleHeaders, type Lifecycle } from '../src/api/lifecycle.ts'
import { ErrorBody } from '../src/api/schemas.ts'
import type { ErrorTable } from '../src/errors/define-errors.ts'
import type { TSchema } from 'typebox'

export interface Schema {
  $ref?: string
  type?: string | string[]
  title?: string
  const?: unknown
  enum?: unknown[]
  description?: string
  default?: unknown
  required?: string[]
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

export interface Media {
  schema: Schema
  example?: unknown
}

export interface Reply {
  $ref?: string
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, Media>
}

export interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema: Schema
}

export interface Operation {
  operationId: string
  summary: string
  description?: string
  deprecated?: boolean
  tags: string[]
  'x-access': string
  'x-airgap-only'?: boolean
  'x-limited'?: boolean
  /** It has an ETag, or as a change honours `If-Match`. */
  'x-etag'?: boolean
  'x-audited'?: boolean | 'sometimes'
  'x-lifecycle'?: Stage
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, Media> }
  responses: Record<string, Reply>
}

/** The life of an operation that is not in production. */
export type Stage = Exclude<Lifecycle, { phase: 'production' }>

/** The parts of the document that our own programs read. */
export interface ApiDocument {
  openapi: string
  info: Record<string, unknown>
  components: Record<string, Record<string, unknown>>
  paths: Record<string, Record<string, Operation>>
}

/** Bodies of requests and replies, recorded by a test. */
interface Example {
  readonly request?: unknown
  /** Of every success. */
  readonly reply?: unknown
  /** By status, where successes have different bodies. */
  readonly replies?: Readonly<Record<string, unknown>>
}

export interface Examples {
  readonly operations: Readonly<Record<string, Example>>
  /** By status. */
  readonly errors: Readonly<Record<string, unknown>>
}

/** What the document says of one API beside its operations. */
export interface DescribedApi {
  readonly version: string
  readonly title: string
  readonly description: string
  readonly servers: readonly object[]
  readonly tags: Readonly<Record<string, string>>
  /** Ways to authenticate, by name; an operation that is not open accepts each. */
  readonly securitySchemes: Readonly<Record<string, object>>
  /** What the check of callers adds to every operation that is not open. */
  readonly scoped?: {
    /** Header fields that it reads. */
    readonly headers: TSchema
    /** Parameters of the query that it reads. */
    readonly query: TSchema
    /** Statuses of its refusals, beside 401. */
    readonly statuses: readonly number[]
  }
}

/** Adds the plugin that collects the routes. Must be called before the rooms add theirs. */
export async function collectDocument(app: FastifyInstance, api: DescribedApi): Promise<void> {
  const { version, title, description, servers, tags, securitySchemes } = api
  const security = Object.keys(securitySchemes).map((name) => ({ [name]: [] }))
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title, version, description },
      servers: [...servers] as { url: string }[],
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
      components: { securitySchemes: { ...securitySchemes } as Record<string, never> },
    },
    transform: ({ schema, url, route }) => ({ url, schema: declare(schema, route, security, api.scoped) }),
  })
}

/** Adds what the room `api` does for every such route (session, refusals) to the schema that the route declares. */
function declare(
  schema: FastifySchema,
  route: RouteOptions,
  token: readonly Record<string, never[]>[],
  scoped: DescribedApi['scoped'],
): FastifySchema {
  const { access = 'viewer', optionalSession, airgapOnly, lifecycle, limited, audit } = route.config ?? {}
  const { writable, hasEtag } = route.config ?? {}
  const isOpen = access === 'open'
  // Fastify reads the body of every change, even where the route declares none.
  const isChange = route.method !== 'GET'
  const statuses = [
    ...(schema.querystring || isChange ? [400] : []),
    ...(isOpen ? [] : [401, ...(scoped?.statuses ?? [])]),
    ...(access === 'admin' || airgapOnly || (isChange && !isOpen) ? [403] : []),
    ...(isChange ? [408, 413, 415] : []),
    ...(schema.params ? [414] : []),
    ...(limited === false ? [] : [429]),
    431,
    500,
    // A read of a secret begins no intent.
    ...(audit && audit.bestEffort !== true && isChange ? [507] : []),
  ]
  const implied = Object.fromEntries(statuses.map((status) => [status, ErrorBody]))
  const stage = lifecycle && lifecycle.phase !== 'production' ? lifecycle : undefined
  return {
    ...schema,
    ...(isOpen || !scoped
      ? {}
      : {
          headers: withFieldsOf(scoped.headers, schema.headers),
          querystring: withFieldsOf(scoped.query, schema.querystring),
        }),
    response: { ...implied, ...(schema.response as object) },
    security: isOpen ? (optionalSession ? [{}, ...token] : []) : token,
    ...(stage ? { deprecated: true, 'x-lifecycle': stage } : {}),
    ...(airgapOnly ? { 'x-airgap-only': true } : {}),
    ...(limited === false ? {} : { 'x-limited': true }),
    // A reply that is recorded only sometimes has the header only then.
    ...(audit ? { 'x-audited': audit.when ? 'sometimes' : true } : {}),
    ...((writable ?? hasEtag) ? { 'x-etag': true } : {}),
    'x-access': access,
  } as FastifySchema
}

/** Headers of all routes, and those that a route declares. */
const withFieldsOf = (common: TSchema, own: unknown) => ({
  ...common,
  properties: {
    ...(common as { readonly properties?: object }).properties,
    ...(own as { readonly properties?: object } | undefined)?.properties,
  },
})

const verbs = ['post', 'get', 'put', 'patch', 'delete']

/** What an app has collected, in an order that does not depend on the files that declare the routes. */
export function collectedDocument(app: { swagger(): unknown }): ApiDocument {
  const document = app.swagger() as ApiDocument
  const paths = Object.entries(document.paths)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, methods]) => {
      const byVerb = Object.entries(methods).sort(
        ([one], [other]) => verbs.indexOf(one) - verbs.indexOf(other),
      )
      return [path, Object.fromEntries(byVerb)] as const
    })
  return { ...document, paths: Object.fromEntries(paths) }
}

/** The finished document: shared schemas and errors as references, descriptions of replies, recorded examples. */
export function finishDocument(
  declared: ApiDocument,
  examples: Examples,
  errorTable: ErrorTable,
): ApiDocument {
  const document = structuredClone(declared)
  const schemas: Record<string, unknown> = {}
  const responses: Record<string, unknown> = {}

  const share = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(share)
    if (typeof value !== 'object' || value === null) return value
    const object = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, share(inner)]))
    if (typeof object.title !== 'string' || object.type !== 'object') return object
    // The items of a list with `fields` are parts of it; the whole is documented.
    if (object.required || !(object.title in schemas)) schemas[object.title] = object
    return { $ref: `#/components/schemas/${object.title}` }
  }

  for (const methods of Object.values(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const known = examples.operations[operation.operationId]
      const { requestBody } = operation
      if (requestBody && Object.values(requestBody.content).some(({ schema }) => mayBeNull(schema)))
        requestBody.required = false
      for (const [index, media] of Object.values(operation.requestBody?.content ?? {}).entries()) {
        media.schema = share(media.schema) as Schema
        // The recorded one is of the first media type.
        if (known?.request !== undefined && index === 0) media.example = known.request
      }
      for (const [status, reply] of Object.entries(operation.responses)) {
        const code = Number(status)
        if (code >= 400) {
          // A path that cannot be routed has no route, so a change is recorded even if its route is not, and a read is not even if its route is.
          const isAudited = code === 414 ? method !== 'get' : operation['x-audited'] === true
          const refused = { ...operation, 'x-audited': isAudited }
          const name = errorName(code, refused)
          responses[name] ??= errorReply(code, refused, examples.errors[status], errorTable)
          operation.responses[status] = { $ref: `#/components/responses/${name}` } as Reply
          continue
        }
        if (reply.description === 'Default Response') reply.description = STATUS_CODES[code] ?? ''
        const isHeld = operation['x-etag'] !== true && (code === 304 || '304' in operation.responses)
        const tag = isHeld ? 'ReplyETag' : operation['x-etag'] === true ? 'ETag' : undefined
        const etag = tag !== undefined && method === 'get' ? { ETag: headerRef(tag) } : {}
        reply.headers = {
          ...reply.headers,
          ...etag,
          ...commonHeaders(code, operation),
          ...lifeHeaders(operation),
        }
        for (const media of Object.values(reply.content ?? {})) {
          media.schema = share(media.schema) as Schema
          const example = known?.replies?.[status] ?? known?.reply
          if (example !== undefined) media.example = example
        }
      }
    }
  }
  share(ErrorBody)
  const used = JSON.stringify([document.paths, responses])
  const shared = Object.entries(headers).filter(([name]) => used.includes(`headers/${name}"`))
  Object.assign(document.components, { schemas, responses, headers: Object.fromEntries(shared) })
  return document
}

const headerRef = (name: string) => ({ $ref: `#/components/headers/${name}` })

// A request whose header fields cannot be read is refused before its route is known.
const isUnread = (status: number) => status === 431

/** Header fields that the room `api` adds to a reply of an operation. */
const commonHeaders = (status: number, operation: Operation) => ({
  'X-Request-Id': headerRef('RequestId'),
  ...(operation['x-audited'] && !isUnread(status)
    ? { AuditUid: headerRef(operation['x-audited'] === 'sometimes' ? 'OwnAuditUid' : 'AuditUid') }
    : {}),
  ...(status === 416 ? { 'Upload-Offset': headerRef('UploadOffset') } : {}),
  ...(operation['x-limited'] && !isUnread(status)
    ? { RateLimit: headerRef('RateLimit'), 'RateLimit-Policy': headerRef('RateLimitPolicy') }
    : {}),
})

/** Name of an error reply. Operations whose errors have the same header fields share one. */
const errorName = (status: number, { 'x-audited': isAudited, 'x-limited': isLimited }: Operation) =>
  isUnread(status)
    ? `${status}`
    : [status, isLimited ? 'limited' : '', isAudited ? 'audited' : ''].filter(Boolean).join('-')

/** Whether there may be no body. */
const mayBeNull = ({ anyOf = [] }: Schema): boolean => anyOf.some(({ type }) => type === 'null')

const header = (description: string, example: unknown, required = false) => ({
  description,
  required,
  schema: { type: typeof example === 'number' ? 'integer' : 'string' },
  example,
})

const headers = {
  RequestId: header(
    "Id of the request: the client's own if it is valid, otherwise a new one.",
    'build-42',
    true,
  ),
  AuditUid: header(
    'The record of this request in the audit trail.',
    '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
    true,
  ),
  OwnAuditUid: header(
    'The record of this request in the audit trail, where it has one.',
    '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
  ),
  ETag: header(
    'The state of what callers may write. A change with it in If-Match is refused if another one came between.',
    '"7dnqLbF2QdKk0GAx6vdJqg"',
    true,
  ),
  ReplyETag: header(
    'Of this reply. With it in If-None-Match a later read is answered 304, without a body, while the reply is the same. In a weak one, fields that move by themselves, as uptimeSeconds and freeBytes, count by their first digits.',
    '"x1Tq0Zp9m3o5b7Qd2Lr8Wg"',
  ),
  RateLimit: header(
    'Name of the limit, requests left (`r`), and seconds in which as many are refilled (`t`); sent once less than half is left.',
    '"users";r=49;t=5',
  ),
  RateLimitPolicy: header(
    'Name of the limit, requests at once (`q`), and seconds in which as many are refilled (`w`); sent with RateLimit.',
    '"users";q=50;w=5',
  ),
  RetryAfter: header('Seconds to wait.', 3),
  UploadOffset: header('Bytes that the host has of the blob: where to continue.', 4_096),
}

function lifeHeaders({ 'x-lifecycle': life }: Operation) {
  if (!life) return {}
  const day = lifecycleHeaders(life)
  return {
    Deprecation: header(
      'The day since or from which the operation is deprecated (RFC 9745).',
      day.deprecation,
    ),
    ...(day.sunset
      ? { Sunset: header('The day until which the operation works unchanged (RFC 8594).', day.sunset) }
      : {}),
    ...(day.link ? { Link: header('The operation that replaces it.', day.link) } : {}),
  }
}

function errorReply(status: number, operation: Operation, example: unknown, errorTable: ErrorTable): Reply {
  const codes = Object.entries(errorTable).filter(([, error]) => error.status === status)
  return {
    description: `${STATUS_CODES[status] ?? ''}: ${codes.map(([code]) => code).join(', ')}.`,
    headers: {
      ...commonHeaders(status, operation),
      ...([429, 503].includes(status) ? { 'Retry-After': headerRef('RetryAfter') } : {}),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        ...(example === undefined ? {} : { example }),
      },
    },
  }
}
