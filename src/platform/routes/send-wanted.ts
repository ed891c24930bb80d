import type { FastifyReply, FastifyRequest } from 'fastify'
import { rangeFor } from '../../api/byte-range.ts'
import type { FileSender } from '../../api/send-file.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Download } from '../clusters/downloads.ts'
import { platformErrors } from '../codes.ts'

/** The headers of every reply that has what is wanted, or says that it is the same. */
export const wantedHeaders = (etag: string) => ({
  ...{ etag, 'cache-control': 'no-store', 'accept-ranges': 'bytes' },
})

/**
 * Sends what is wanted of a host, or the range of it that is asked for: what stands before the definition, its file, and what stands after.
 * @throws AppError RangeUnsatisfiable, SecretReplaced; NotFound where the definition was removed
 */
export async function sendWanted(
  sender: FileSender,
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, reprDigest, definitionBytes, open, frame }: Download,
): Promise<void> {
  const headers = wantedHeaders(etag)
  const { before, after } = frame()
  const sizeBytes = before.length + definitionBytes + after.length
  const range = rangeFor(request, etag, sizeBytes)
  if (range === 'unsatisfiable') {
    void reply.headers({ ...headers, 'content-range': `bytes */${sizeBytes}` })
    throw new AppError(platformErrors.RangeUnsatisfiable, `the range is not within the ${sizeBytes} bytes`)
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 }
  const begin = () =>
    reply.code(range ? 206 : 200).headers({
      ...headers,
      ...{ 'content-type': 'application/x-tar', 'content-length': end + 1 - start },
      'repr-digest': reprDigest,
      ...(range ? { 'content-range': `bytes ${start}-${end}/${sizeBytes}` } : {}),
    })
  // Of each part what is within the range.
  const [fileStart, afterStart] = [before.length, before.length + definitionBytes]
  const within = (at: number, most: number) => Math.max(0, Math.min(at, most))
  const [from, to] = [
    within(start - fileStart, definitionBytes),
    within(end + 1 - fileStart, definitionBytes),
  ]
  const file = await open()
  try {
    await sender.send({
      ...(file ? { file } : {}),
      ...{ start: from, sizeBytes: to - from },
      before: before.subarray(start, end + 1),
      after: after.subarray(
        within(start - afterStart, after.length),
        within(end + 1 - afterStart, after.length),
      ),
      begin: () => begin().hijack(),
    })
  } finally {
    await file?.close()
  }
}
