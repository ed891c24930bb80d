import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostFiles } from '../../../host/files.ts'
import { replaceFile } from '../../../system/files.ts'

/** A note of what the step program has placed, JSON, and where it is. */
export interface NotePlace {
  readonly files: HostFiles
  /** The folder that stands for the root of this host. */
  readonly root: string
  /** Absolute, as on the host itself. */
  readonly note: string
}

/** Reads a note. @returns `empty` where there is none, and where it cannot be read: then the host itself is looked at */
export async function readNote<Note extends object>(
  { files, note }: Pick<NotePlace, 'files' | 'note'>,
  empty: Note,
): Promise<Note> {
  const text = await files.text(note)
  if (text === undefined) return empty
  try {
    const found: unknown = JSON.parse(text)
    const isObject = found !== null && typeof found === 'object' && !Array.isArray(found)
    return isObject ? { ...empty, ...found } : empty
  } catch {
    return empty
  }
}

export async function writeNote({ root, note }: NotePlace, content: object): Promise<void> {
  await mkdir(dirname(join(root, note)), { recursive: true, mode: 0o700 })
  await replaceFile(join(root, note), JSON.stringify(content), 0o600)
}

export const removeNote = ({ root, note }: NotePlace): Promise<void> => rm(join(root, note), { force: true })
