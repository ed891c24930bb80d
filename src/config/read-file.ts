import { isUtf8 } from 'node:buffer'
import { readdirSync } from 'node:fs'
import { getSystemErrorMap } from 'node:util'
import { FileRefused, readRegularFileSync, textFileBytes } from '../system/regular-file.ts'

/** Why a file could not be read, as the end of a sentence that starts with the file name. */
export interface Unreadable {
  readonly missing: boolean
  readonly reason: string
  /** The line in the file, if known. */
  readonly line?: number
}

/** Reads a configuration file as text: at most 1 MiB of UTF-8; a byte order mark is dropped. */
export function readConfigFile(file: string): { readonly text: string } | Unreadable {
  try {
    const { bytes } = readRegularFileSync(file, textFileBytes)
    if (!isUtf8(bytes)) return { missing: false, reason: 'is not UTF-8 text', line: findForeignLine(bytes) }
    return { text: new TextDecoder().decode(bytes) }
  } catch (error) {
    return describeFailure(error)
  }
}

/**
 * Lists the drop-ins of a directory, weakest first: names ending in `.yaml`, in byte order. Hidden names are skipped,
 * because editors use them for locks and swap files.
 */
export function listDropIns(directory: string): { readonly names: string[] } | Unreadable {
  try {
    const names = readdirSync(directory).filter((name) => name.endsWith('.yaml') && !name.startsWith('.'))
    return { names: sortByBytes(names) }
  } catch (error) {
    return describeFailure(error)
  }
}

/** Names in byte order, as drop-ins count. */
export const sortByBytes = (names: readonly string[]): string[] =>
  names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))

/** A newline is never part of a longer UTF-8 sequence, so each line can be checked alone. */
function findForeignLine(bytes: Buffer): number {
  let line = 1
  let start = 0
  for (let end = bytes.indexOf(10); end !== -1 && isUtf8(bytes.subarray(start, end)); line++) {
    start = end + 1
    end = bytes.indexOf(10, start)
  }
  return line
}

function describeFailure(error: unknown): Unreadable {
  if (error instanceof FileRefused) return { missing: false, reason: error.reason }
  const { errno, code } = error as NodeJS.ErrnoException
  if (errno === undefined) throw error
  const words = getSystemErrorMap().get(errno)?.[1] ?? String(code)
  return {
    missing: code === 'ENOENT',
    reason: code === 'ENOENT' ? 'does not exist' : `cannot be read: ${words}`,
  }
}
