import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs'
import { open, stat } from 'node:fs/promises'

// Most files that are read here are smaller, and what a file says of its size need not be so.
const firstBytes = 2_048

/** What a file of text may hold where its reader says no other bound. */
export const textFileBytes = 1_048_576

/** What stands at a path is not read: it is a pipe, a device, a folder, or larger than its reader takes. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
  readonly code = 'FileRefused'
  readonly path: string
  /** The end of a sentence that begins with the file. */
  readonly reason: string

  constructor(path: string, reason: string) {
    super(`${path} ${reason}`)
    this.path = path
    this.reason = reason
  }
}

/** A file as it was read. */
export interface RegularFile {
  readonly bytes: Buffer
  readonly stats: Stats
}

// Not blocking, since open(2) of a pipe waits for its writer; a terminal does not become the one of this process.
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Reads a regular file whole; links are followed, and one to /dev/null is an empty file, as systemd takes it. What else may
 * stand at a path is refused before it is opened, since opening alone can do something to a device.
 * @param maximumBytes what is larger is refused, however large it says that it is: a file of /proc says 0, and one may
 *   grow while it is read
 * @throws FileRefused, and the system's error as it is, for example `ENOENT`
 */
export async function readRegularFile(path: string, maximumBytes: number): Promise<RegularFile> {
  const found = await stat(path)
  if (isNull(found)) return { bytes: Buffer.alloc(0), stats: found }
  requireRegular(path, found, maximumBytes)
  const file = await open(path, flags)
  try {
    const stats = await file.stat()
    requireRegular(path, stats, maximumBytes)
    let bytes = Buffer.allocUnsafe(firstBytes)
    for (let length = 0; ;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, null)
      if (bytesRead === 0) return { bytes: bytes.subarray(0, length), stats }
      length += bytesRead
      requireSize(path, length, maximumBytes)
      if (length === bytes.length) bytes = doubled(bytes)
    }
  } finally {
    await file.close()
  }
}

/** The same without a turn of the event loop: for memory of the kernel, and for programs in which nothing else waits. */
export function readRegularFileSync(path: string, maximumBytes: number): RegularFile {
  const found = statSync(path)
  if (isNull(found)) return { bytes: Buffer.alloc(0), stats: found }
  requireRegular(path, found, maximumBytes)
  const file = openSync(path, flags)
  try {
    const stats = fstatSync(file)
    requireRegular(path, stats, maximumBytes)
    let bytes = Buffer.allocUnsafe(firstBytes)
    for (let length = 0; ;) {
      const bytesRead = readSync(file, bytes, length, bytes.length - length, null)
      if (bytesRead === 0) return { bytes: bytes.subarray(0, length), stats }
      length += bytesRead
      requireSize(path, length, maximumBytes)
      if (length === bytes.length) bytes = doubled(bytes)
    }
  } finally {
    closeSync(file)
  }
}

/**
 * For a file that is opened by other code, a library for example; it need not exist.
 * @throws FileRefused, and the system's error as it is, for example `ELOOP`
 */
export function requireRegularIfPresent(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found) requireRegular(path, found, Infinity)
}

const doubled = (bytes: Buffer) => Buffer.concat([bytes], bytes.length * 2)

/** Character device 1, 3 (Documentation/admin-guide/devices.txt of the kernel). */
const isNull = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0x103

function requireRegular(path: string, stats: Stats, maximumBytes: number): void {
  if (!stats.isFile()) throw new FileRefused(path, `is ${kindOf(stats)}, not a regular file`)
  requireSize(path, stats.size, maximumBytes)
}

function requireSize(path: string, bytes: number, maximumBytes: number): void {
  if (bytes > maximumBytes) throw new FileRefused(path, `has more than ${maximumBytes} bytes`)
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder'
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  return 'a device'
}
