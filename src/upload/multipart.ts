import multipart, { type MultipartFile } from '@fastify/multipart'
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Readable } from 'node:stream'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { offBodyRefused, onBodyRefused } from '../api/replies.ts'
import { connectionEnded } from '../api/errors.ts'
import { letBodyGo } from './raw-body.ts'

const options = {
  limits: {
    // Fields and files together.
    parts: 32,
    files: 32,
    headerPairs: 64,
    // Not the JSON limit of the server; the reader of the file limits its size, and form-parts.ts limits the rest.
    fileSize: Number.POSITIVE_INFINITY,
  },
  throwFileSizeLimit: false,
  // The library would collect a field in memory and decode it as text, which a binary signature does not survive.
  isPartAFile: () => true,
}

/**
 * Adds routes that accept only `multipart/form-data`. Every other route of the app still answers 415 to it.
 * @param addRoutes the plugin with these routes; each one reads its parts with `formParts`
 */
export async function addMultipart(app: FastifyInstance, addRoutes: FastifyPluginAsync): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // The schema of a form is only for the API document; the reader of the parts validates them.
    scope.setValidatorCompiler(() => () => true)
    await scope.register(multipart, options)
    await scope.register(addRoutes)
  })
}

/** The schema of a form for the API document: its parts, each with a description. */
export const formSchema = (parts: Readonly<Record<string, string>>, required: readonly string[]) => ({
  consumes: ['multipart/form-data'],
  body: {
    ...Type.Object(
      Object.fromEntries(
        Object.entries(parts).map(([name, description]) => [
          name,
          Type.Unsafe({ type: 'string', format: 'binary', description }),
        ]),
      ),
    ),
    required: [...required],
  },
})

/** A part of a form. Unread content is read and discarded when the next part is requested. */
interface FormPart {
  readonly fieldName: string
  /** The file name given by the client; undefined for a part that is not a file. */
  readonly fileName: string | undefined
  /** Can be read once. Throws the errors of `formParts`; the reader may stop early. */
  readonly content: AsyncIterable<Buffer>
}

// Limit for headers, boundaries, signature and unwanted parts, including bytes inside the parser. The bytes of the file
// itself do not count.
const besideBytes = 524_288

/**
 * Iterates over the parts of a multipart body and adds what the library lacks: the data beside the part `fileField` is
 * bounded, so that a body without boundaries, with endless headers or with endless other parts is not read to its end;
 * and the body is released when no more parts are requested.
 * @param signal aborts the form with its reason, an AppError, also while no data arrives
 * @throws AppError BadRequest or PayloadTooLarge for a form that is malformed, cut off or too large; the error that the
 * body was refused with, for example `RequestTimeout`
 */
export async function* formParts(
  request: FastifyRequest,
  fileField: string,
  signal?: AbortSignal,
): AsyncGenerator<FormPart> {
  const { raw } = request
  // The library would wait for an event that has already fired.
  if (raw.destroyed && !raw.readableEnded) throw connectionEnded()
  const parts = request.parts()
  let received = 0
  let current: MultipartFile | undefined
  let file: MultipartFile | undefined
  const refusal = Promise.withResolvers<never>()
  refusal.promise.catch(() => undefined)

  function count({ length }: Buffer): void {
    received += length
    if (received - (file?.file.bytesRead ?? 0) <= besideBytes) return
    end(
      new AppError(
        generalErrors.PayloadTooLarge,
        `the form has too much data beside ${fileField}; send only that part and signature, separated by the boundary in Content-Type`,
      ),
    )
  }

  function end(reason: AppError): void {
    raw.off('data', count)
    raw.unpipe()
    current?.file.destroy(reason)
    refusal.reject(reason)
  }

  const onAbort = () => end(signal?.reason as AppError)
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted) onAbort()
  onBodyRefused(raw, end)
  let finished = false
  try {
    for (;;) {
      const next = parts.next()
      // Added after the listener of the parser, so that the parser sees each chunk before it is counted.
      if (raw.listenerCount('data', count) === 0) raw.on('data', count)
      const result = await Promise.race([next, refusal.promise]).catch(refuse)
      if (result.done === true) break
      // The plugin treats every part as a file, see multipart.ts.
      current = result.value as MultipartFile
      if (current.fieldname === fileField) file ??= current
      const { fieldname, filename, file: content } = current
      yield { fieldName: fieldname, fileName: filename, content: chunksOf(content) }
      // The parser continues only when the content was read; `count` bounds it.
      if (!content.destroyed) await drain(chunksOf(content))
    }
    finished = true
  } finally {
    raw.off('data', count)
    offBodyRefused(raw, end)
    signal?.removeEventListener('abort', onAbort)
    if (!finished) {
      raw.unpipe()
      letBodyGo(raw)
    }
  }
}

/** Converts errors of the body, and only those: errors of its reader stay as they are. */
async function* chunksOf(content: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of content as AsyncIterable<Buffer>) yield chunk
  } catch (error) {
    refuse(error)
  }
}

async function drain(chunks: AsyncGenerator<Buffer>): Promise<void> {
  while ((await chunks.next()).done !== true);
}

const gone = new Set(['FST_MP_PREMATURE_CLOSE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'])

/** Converts an error of the library or of the connection to one for the client. */
function refuse(error: unknown): never {
  if (error instanceof AppError) throw error
  const { code = '', message } = error as NodeJS.ErrnoException
  if (gone.has(code)) throw connectionEnded()
  if (code === 'FST_PARTS_LIMIT' || code === 'FST_FILES_LIMIT')
    throw new AppError(
      generalErrors.PayloadTooLarge,
      'the form has too many parts; send uploadFile and signature',
    )
  if (message.includes('Unexpected end') || message.includes('terminated early'))
    throw new AppError(
      generalErrors.BadRequest,
      'the form is cut off: its last boundary is missing; send it whole',
    )
  throw new AppError(
    generalErrors.BadRequest,
    'the body is not a form; send multipart/form-data with the boundary that Content-Type names',
    { cause: error },
  )
}
