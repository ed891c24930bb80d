import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { contentErrors } from '../codes.ts'

/** The bytes of a blob that a request carries. */
export interface ByteRange {
  readonly offset: number
  readonly lengthBytes: number
  /** Size of the blob, if the request says it. */
  readonly totalBytes: number | undefined
}

// RFC 9110, 14.4; the distribution specification leaves out the unit and the size.
const syntax = /^(?:bytes )?(\d{1,15})-(\d{1,15})(?:\/(\d{1,15}|\*))?$/

/** @throws AppError BadRequest */
export function parseContentRange(text: string | undefined): ByteRange {
  const [, first, last, total] = syntax.exec(text ?? '') ?? []
  const [offset, end] = [Number(first), Number(last)]
  if (first === undefined || end < offset)
    throw invalid(
      text === undefined
        ? 'Content-Range is missing; send bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096'
        : 'Content-Range is not bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096',
    )
  return {
    offset,
    lengthBytes: end - offset + 1,
    totalBytes: total === undefined || total === '*' ? undefined : Number(total),
  }
}

/**
 * Checks that a range continues a blob.
 * @throws AppError WrongOffset with the right offset, BadRequest for a range that does not fit the size of the blob
 */
export function requireRange(
  { offset, lengthBytes, totalBytes }: ByteRange,
  heldBytes: number,
  sizeBytes: number,
): void {
  if (totalBytes !== undefined && totalBytes !== sizeBytes)
    throw invalid(`the blob has ${sizeBytes} bytes, as its manifest says, not ${totalBytes}`)
  if (offset !== heldBytes) throw wrongOffset(heldBytes)
  if (offset + lengthBytes > sizeBytes)
    throw invalid(`the blob has ${sizeBytes} bytes; Content-Range ends at ${offset + lengthBytes}`)
}

const wrongOffset = (offset: number) =>
  new AppError(contentErrors.WrongOffset, `the host has ${offset} bytes of this blob; continue there`, {
    details: { field: 'content-range', offset },
  })

const invalid = (message: string) =>
  new AppError(generalErrors.BadRequest, message, { details: { field: 'content-range' } })
