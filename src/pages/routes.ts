// The pages for browsers: files that the build has made, with their compressed forms beside them (`build/console.ts`). They have no state and no
// API of their own: what a page shows, it asks of the service API as any client does. They are not in the API document and not in the audit trail.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { etagOf, matchesEtag } from '../api/etag.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Ground, Room } from '../root/room.ts'

/** A page needs no policy of Trusted Types, so none is allowed: no text can become markup or a script, whoever wrote it. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/**
 * Header fields of every page. No `Strict-Transport-Security`: it would hold for every port of the name of this host, and takes away the
 * exception of a browser for a certificate that the host has made itself.
 */
const securityHeaders = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()',
  'x-frame-options': 'DENY',
} as const

const mediaTypes: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Codings in the order of preference, with the endings of their files. */
const codings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

interface PageFile {
  readonly mediaType: string
  readonly etag: string
  /** Its name contains its hash, so that it never changes. */
  readonly isImmutable: boolean
  /** By coding; `identity` is the file as it is. */
  readonly bodies: ReadonlyMap<string, Buffer>
}

/** Reads the files of a folder; `.br` and `.gz` are forms of the file beside them. */
function readPageFiles(folder: string): ReadonlyMap<string, PageFile> {
  const names = readdirSync(folder)
  const files = names.filter((name) => !codings.some(([, ending]) => name.endsWith(ending)))
  return new Map(
    files.map((name) => {
      const body = readFileSync(join(folder, name))
      const coded = codings
        .filter(([, ending]) => names.includes(name + ending))
        .map(([coding, ending]) => [coding, readFileSync(join(folder, name + ending))] as const)
      const file: PageFile = {
        mediaType: mediaTypes[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
        etag: etagOf(body),
        isImmutable: /-[A-Z0-9]{8}\.\w+$/.test(name),
        bodies: new Map([...coded, ['identity', body]]),
      }
      return [name, file]
    }),
  )
}

/** The best coding that a client accepts (RFC 9110, 12.5.3); one with a weight of 0 it does not. */
function codingFor({ headers }: FastifyRequest, { bodies }: PageFile): string {
  const accepted = new Map(
    (headers['accept-encoding'] ?? '')
      .toLowerCase()
      .split(',')
      .map((item) => {
        const [name = '', weight = ''] = item.split(';').map((part) => part.trim())
        return [name, !/^q=0(\.0*)?$/.test(weight)] as const
      }),
  )
  return codings.find(([coding]) => bodies.has(coding) && accepted.get(coding) === true)?.[0] ?? 'identity'
}

interface PagesOptions {
  /** Folder of the files; read once, at the first request. */
  readonly folder: string
}

/** The pages: `/` is the one document, `/console/:file` the files that it names. Without `pages.enabled` there are no such routes. */
export function createPages(
  ground: Ground<{ readonly pages: { readonly enabled: boolean } }>,
  { folder }: PagesOptions,
): Room {
  let files: ReadonlyMap<string, PageFile> | undefined
  function send(request: FastifyRequest, reply: FastifyReply, name: string) {
    files ??= readPageFiles(folder)
    const file = files.get(name)
    if (!file) throw new AppError(generalErrors.NotFound, 'the pages have no such file')
    reply.headers({
      ...securityHeaders,
      etag: file.etag,
      vary: 'Accept-Encoding',
      'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    })
    if (matchesEtag(request, file.etag)) return reply.code(304).send()
    const coding = codingFor(request, file)
    if (coding !== 'identity') reply.header('content-encoding', coding)
    return reply.type(file.mediaType).send(file.bodies.get(coding))
  }
  if (!ground.config.pages.enabled) return {}
  return {
    async routes(app: FastifyInstance) {
      app.get('/', { config: { access: 'open' } }, async (request, reply) =>
        send(request, reply, 'index.html'),
      )
      app.get<{ Params: { file: string } }>(
        '/console/:file',
        { config: { access: 'open' } },
        async (request, reply) => send(request, reply, request.params.file),
      )
    },
  }
}
