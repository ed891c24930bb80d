import type { FileHandle } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { rangeFor } from '../../api/byte-range.ts'
import { matchesEtag } from '../../api/etag.ts'
import { ReadFailed, type FileSender } from '../../api/send-file.ts'
import { AppError } from '../../errors/app-error.ts'
import type { ErrorKind } from '../../errors/define-errors.ts'
import { FileRefused, openRegularFile } from '../../system/regular-file.ts'
import { hexOf } from '../store/folder.ts'
import type { OpenStore } from '../store/open-store.ts'
import { registryErrors } from './codes.ts'
import type { SuspectBlobs } from './damage.ts'
import { findBlob, type PulledBlob } from './pull-index.ts'

export interface PullOptions {
  /** Open. */
  readonly store: OpenStore
  readonly sender: FileSender
  readonly suspects: SuspectBlobs
}

/** What is pulled: a blob as bytes, or an index or manifest with its media type. */
export type Pulled = 'blob' | 'manifest'

/** A digest of any algorithm: https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md#digests */
const digestForm = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/
const sha256Form = /^sha256:[0-9a-f]{64}$/

// Of a file that is gone, of a damaged disk, and of links that lead nowhere.
const damageCodes: ReadonlySet<string> = new Set(['ENOENT', 'EIO', 'EUCLEAN', 'ELOOP', 'ENOTDIR'])

/** @throws AppError DigestInvalid */
export function requireDigest(digest: string): void {
  if (digestForm.test(digest) && (!digest.startsWith('sha256:') || sha256Form.test(digest))) return
  throw new AppError(
    registryErrors.DigestInvalid,
    'the digest must be sha256: and 64 hexadecimal digits in lower case',
  )
}

/** The content of a digest, as the reply to GET and HEAD. */
export function createPull({ store, sender, suspects }: PullOptions) {
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
        ? 'this digest is that of a layer or configuration, not of a manifest'
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
    const range = isRead ? rangeFor(request, etag, sizeBytes) : undefined
    if (range === 'unsatisfiable') {
      void reply.header('content-range', `bytes */${sizeBytes}`)
      throw new AppError(registryErrors.RangeUnsatisfiable, `the range is not within the ${sizeBytes} bytes`)
    }
    const { start, end } = range ?? { start: 0, end: sizeBytes - 1 }
    const begin = () =>
      reply.code(range ? 206 : 200).headers({
        ...headers,
        ...{ 'accept-ranges': 'bytes', 'content-length': end + 1 - start },
        'content-type': what === 'manifest' ? mediaType : 'application/octet-stream',
        ...(range ? { 'content-range': `bytes ${start}-${end}/${sizeBytes}` } : {}),
      })
    const file = await openWhole(blob, what, isRead)
    try {
      if (isRead)
        await sender.send({
          ...{ file, start, sizeBytes: end + 1 - start },
          begin: () => begin().hijack(),
        })
      else void begin().send()
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
