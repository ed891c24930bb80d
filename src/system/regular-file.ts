import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs'
import { open, stat, type FileHandle } from 'node:fs/promises'

// Most files that are read here are smaller, and the size that a file reports need not be right.
const firstBytes = 2_048

/** Most bytes of a text file where its reader sets no other bound. */
export const textFileBytes = 1_048_576

/** The entry at a path is not read: it is a pipe, a device or a folder, or larger than its reader accepts. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
  readonly code = 'FileRefused'
  readonly path: string
  /** Completes a sentence that begins with the path. */
  readonly reason: string

  constructor(path: string, reason: string) {
    super(`${path} ${reason}`)
    this.path = path
    this.reason = reason
  }
}

/** The content of a file, and its stat(2) of the same moment. */
export interface RegularFile {
  readonly bytes: Buffer
  readonly stats: Stats
}

// O_NONBLOCK, since open(2) of a pipe waits for its writer. O_NOCTTY, so that a terminal does not become the controlling one.
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Reads a whole regular file. Links are followed; a link to /dev/null counts as an empty file, as systemd treats it. Any
 * other kind of file is refused before it is opened, since opening a device can already have an effect.
 * @param maximumBytes a larger file is refused. The bytes that are read count, not the reported size: a file of /proc
 *   reports 0, and a file may grow while it is read
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

/**
 * Opens a regular file for reading; a link is followed. The caller closes it.
 * @throws FileRefused for any other kind of file, and the system's error as it is
 */
export async function openRegularFile(path: string): Promise<FileHandle> {
  requireRegular(path, await stat(path), Infinity)
  const file = await open(path, flags)
  try {
    requireRegular(path, await file.stat(), Infinity)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** The same as readRegularFile, synchronously: for /proc and /sys, which are kernel memory, and for programs that do nothing else meanwhile. */
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
 * Checks a file that other code opens, a library for example; it need not exist.
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

/** Reads the end of a file that may grow: whole lines, as the first one is left out unless it begins the file. @throws FileRefused as the others */
export async function readLastLines(path: string, maximumBytes: number): Promise<string> {
  const file = await openRegularFile(path)
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - maximumBytes)
    const buffer = Buffer.alloc(size - from)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
    const text = buffer.subarray(0, bytesRead).toString()
    return from === 0 ? text : text.slice(text.indexOf('\n') + 1)
  } finally {
    await file.close()
  }
}
