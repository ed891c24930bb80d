import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Static } from 'typebox'
import type { ErrorBody } from '../api/schemas.ts'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { program } from '../base/program.ts'
import { Failure } from './exit-codes.ts'
import { oneLine, type Paper, renderTable, type Column } from './layout.ts'

/** A whole reply. */
export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

// Far larger than any reply of the daemon that is read as a whole; a download is a stream and has no limit.
const replyLimitBytes = 16_777_216

/** @throws Failure when the body is incomplete or larger than 16 MiB */
export async function readReply(message: IncomingMessage): Promise<Reply> {
  const body = createGrowingBuffer(replyLimitBytes)
  try {
    for await (const part of message as AsyncIterable<Buffer>) if (!body.add(part)) throw tooLarge()
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('unreachable', `the reply is incomplete: ${(error as Error).message}`, { cause: error })
  }
  return { status: message.statusCode ?? 0, headers: message.headers, body: body.bytes() }
}

const tooLarge = () =>
  new Failure(
    'failed',
    `the reply is larger than ${replyLimitBytes} bytes, as no reply of ${program.daemon} is; check which program answers there`,
  )

/**
 * The body of a successful reply. Another program than the daemon may have sent it, and this one contains no schemas, so only the fields
 * needed for display are checked.
 * @param fields names that the body must have
 * @throws Failure when the body is not a JSON object, or lacks one of the fields
 */
export function parseBody<T extends object>({ body }: Reply, fields: readonly (keyof T & string)[]): T {
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch (error) {
    throw foreignReply('it is not JSON', error)
  }
  return requireFields<T>(value, fields)
}

/**
 * The same for a part of a body.
 * @throws Failure when the part is not an object, or lacks one of the fields
 */
export function requireFields<T extends object>(value: unknown, fields: readonly (keyof T & string)[]): T {
  if (typeof value !== 'object' || value === null) throw foreignReply('it is not a JSON object')
  const missing = fields.find((name) => ((value as Partial<T>)[name] ?? undefined) === undefined)
  if (missing !== undefined) throw foreignReply(`it has no ${missing}`)
  return value as T
}

/**
 * Calls `show`, which reads unchecked fields of a reply.
 * @throws Failure where a field is missing or of another type
 */
export function understand<T>(show: () => T): T {
  try {
    return show()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw foreignReply(`a field is missing or of a different type (${error.message})`, error)
  }
}

export const foreignReply = (reason: string, cause?: unknown) =>
  new Failure(
    'failed',
    `the reply is not one that this ${program.ctl} understands: ${reason}; check which program answers there, and whether it has the same version: ${program.ctl} version`,
    { cause },
  )

/** The body of an error reply; `undefined` if it has another form. */
export function errorOf({ body }: Reply): Static<typeof ErrorBody> | undefined {
  try {
    const value = JSON.parse(body.toString()) as unknown
    if (typeof value !== 'object' || value === null) return undefined
    const { code, message, ref = '' } = value as Record<string, unknown>
    const areTexts = [code, message, ref].every((field) => typeof field === 'string')
    return areTexts ? (value as Static<typeof ErrorBody>) : undefined
  } catch {
    return undefined
  }
}

/** The failure for a refusal of the host, in words for the user. */
export function toFailure(reply: Reply): Failure {
  const error = errorOf(reply)
  const exitName = reply.status === 401 ? 'notLoggedIn' : 'failed'
  if (!error)
    return new Failure(
      exitName,
      `the ${program.noun} answered with status ${reply.status}${describeRedirect(reply)}`,
    )
  const { code, message, ref } = error
  const wait = reply.status === 429 ? `; wait ${reply.headers['retry-after'] ?? 'a few'} seconds` : ''
  const trace =
    reply.status >= 500 && ref
      ? `\nOn the ${program.noun}: journalctl -u ${program.daemon} | grep ${oneLine(ref)}`
      : ''
  return new Failure(exitName, `${oneLine(message)} (${oneLine(code)})${wait}${trace}`)
}

const describeRedirect = ({ status, headers: { location } }: Reply): string =>
  status >= 300 && status <= 399 && location !== undefined
    ? ` and redirects to ${oneLine(location)}, which ${program.daemon} never does; check which program answers there`
    : ''

/** A finding of the checks before a cluster is made or changed. */
interface Problem {
  readonly severity: string
  readonly code: string
  readonly message: string
  readonly path?: string
  readonly pack?: string
}

// The server renders every chart and searches for every image before it answers.
export const checkMs = 600_000

const layout: readonly Column<Problem>[] = [
  { title: 'SEVERITY', read: ({ severity }) => severity },
  { title: 'CODE', read: ({ code }) => code },
  {
    title: 'WHERE',
    read: ({ pack = '', path }) => [pack.slice(pack.indexOf('/') + 1), path].filter(Boolean).join(' '),
    isFlexible: true,
  },
  { title: 'PROBLEM', read: ({ message }) => message, isFlexible: true },
]

export const renderProblems = (problems: readonly Problem[], { columns }: Paper): string =>
  renderTable(problems, layout, columns)

/** The findings of a refusal; undefined for a refusal without any. */
export function problemsOf(reply: Reply): readonly Problem[] | undefined {
  const problems: unknown = errorOf(reply)?.details?.problems
  return Array.isArray(problems) ? (problems as Problem[]) : undefined
}
