import { closeSync, openSync, readSync } from 'node:fs'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { printable } from '../base/printable.ts'
import { systemReason } from '../errors/system-reason.ts'
import { Failure } from './exit-codes.ts'

// Far larger than any body that a daemon accepts as JSON.
const usualLimitBytes = 16_777_216

/**
 * Reads a file that the user has named, or a pipe, such as <(…) of a shell; a device without an end is refused at the limit.
 * @param file - is standard input
 * @param name of the option or argument that names the file, for messages
 * @param limitBytes most bytes that are read
 * @throws Failure usage
 */
export function readBody(file: string, name: string, limitBytes = usualLimitBytes): Buffer {
  const body = createGrowingBuffer(limitBytes)
  const part = Buffer.allocUnsafe(65_536)
  try {
    const source = file === '-' ? 0 : openSync(file, 'r')
    try {
      for (let length = 0; (length = readSync(source, part)) > 0;)
        if (!body.add(part.subarray(0, length)))
          throw new Failure('usage', `${name}: ${printable(file)} has more than ${limitBytes} bytes`)
    } finally {
      if (source !== 0) closeSync(source)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(
      'usage',
      `${name}: ${printable(file)} cannot be read: ${systemReason(error as Error)}`,
      {
        cause: error,
      },
    )
  }
  return body.bytes()
}
