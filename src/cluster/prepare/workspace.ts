import { exactDigitsOf, isRecord } from '../../base/json.ts'
import { type PreflightCodeName, preflightCodes, type PreflightProblem } from '../desired/preflight-codes.ts'
import { createHash } from 'node:crypto'
import { chmod, copyFile, link, mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DiskRoom } from '../../archive/disk-room.ts'

export type Mapping = Readonly<Record<string, unknown>>

/** The mapping below keys; empty if there is none. */
export function mappingAt(value: unknown, ...keys: readonly string[]): Mapping {
  const found = valueAt(value, ...keys)
  return isRecord(found) ? found : {}
}

/** The value below keys; undefined if there is none. */
export function valueAt(value: unknown, ...keys: readonly string[]): unknown {
  let found: unknown = value
  for (const key of keys) found = isRecord(found) && Object.hasOwn(found, key) ? found[key] : undefined
  return found
}

/** The text of a single value; undefined for nothing, lists and mappings. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : exactDigitsOf(value)

/** Reports a problem of a pack. @param message a sentence that begins with its subject */
export type PackReport = (
  code: PreflightCodeName,
  message: string,
  severity?: PreflightProblem['severity'],
) => void

/** @param add receives the problems; @param pack `id` of the pack, which begins the messages */
export const createPackReport =
  (add: (problem: PreflightProblem) => void, pack: string): PackReport =>
  (code, message, severity = preflightCodes[code].severity) =>
    add({ code, severity, message: `pack ${pack}: ${message}`, pack })

/** Writes files into the staging folder. */
export interface Workspace {
  readonly folder: string
  /**
   * Writes a file of mode 0600. @param path relative to the folder
   * @returns SHA-256 of the content, hex
   * @throws AppError StorageFull
   */
  write(path: string, content: string): Promise<string>
  /** Gives a file of the workspace another name. @param path relative to the folder */
  link(from: string, path: string): Promise<void>
  /** Copies a file into the workspace, with mode 0600. @param path relative to the folder @throws AppError StorageFull */
  copy(from: string, path: string): Promise<void>
}

export function createWorkspace(folder: string, room: DiskRoom): Workspace {
  /** Makes the folder of a file. @returns the whole path */
  async function placeOf(path: string): Promise<string> {
    const whole = join(folder, path)
    await mkdir(dirname(whole), { recursive: true, mode: 0o700 })
    await room.takeFile()
    return whole
  }

  return {
    folder,
    async write(path, content) {
      const bytes = Buffer.from(content)
      const whole = await placeOf(path)
      await room.take(bytes.length)
      await writeFile(whole, bytes, { mode: 0o600 })
      return hashOf(bytes)
    },
    async link(from, path) {
      await link(join(folder, from), await placeOf(path))
    },
    async copy(from, path) {
      const whole = await placeOf(path)
      await room.take((await stat(from)).size)
      await copyFile(from, whole)
      await chmod(whole, 0o600)
    },
  }
}

export const hashOf = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex')

/** A part of a path that is made from a name of the definition. */
export const pathPartOf = (name: string): string => name.replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 80)
