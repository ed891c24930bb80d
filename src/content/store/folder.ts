import { mkdir, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile, sweepTemporary } from '../../system/files.ts'

/** Paths in the folder of the content. */
export interface ContentFolder {
  readonly root: string
  /** The blobs that records name, each named by its digest in hex. */
  readonly blobs: string
  /** The record of each published bundle, `<uid>.jsonl`. */
  readonly bundles: string
  readonly uploads: string
  /** A file for each damaged blob, named by its digest in hex: its content if there was one, else empty. */
  readonly damaged: string
  readonly indexFile: string
  readonly pinsFile: string
  /** The highest number of a publication. */
  readonly publicationFile: string
}

/** The folder of the content. @param directory `content.directory`; empty by default */
export const contentRoot = (directory: string, stateDirectory: string) =>
  directory || join(stateDirectory, 'content')

/** @param root `content.directory` */
export const contentFolder = (root: string): ContentFolder => ({
  root,
  blobs: join(root, 'blobs', 'sha256'),
  bundles: join(root, 'bundles'),
  uploads: join(root, 'uploads'),
  damaged: join(root, 'damaged'),
  indexFile: join(root, 'index.json'),
  pinsFile: join(root, 'pins.json'),
  publicationFile: join(root, 'last-publication'),
})

const recordEnd = '.jsonl'
const asideEnd = '.jsonl.damaged'

/** @returns the uid, if this is the name of a record */
export const uidOfRecord = (name: string) =>
  name.endsWith(recordEnd) ? name.slice(0, -recordEnd.length) : undefined
export const isAside = (name: string) => name.endsWith(asideEnd)
export const recordFile = ({ bundles }: ContentFolder, uid: string) => join(bundles, uid + recordEnd)
/** Where a damaged record is kept. */
export const asideFile = ({ bundles }: ContentFolder, uid: string) => join(bundles, uid + asideEnd)

export const hexOf = (digest: string) => digest.slice(digest.indexOf(':') + 1)
export const isHex = (name: string) => /^[0-9a-f]{64}$/.test(name)

/** Makes what is missing of the folder, and removes the temporary files of a killed daemon. */
export async function makeContentFolder(folder: ContentFolder): Promise<void> {
  for (const each of [folder.root, folder.blobs, folder.bundles, folder.uploads, folder.damaged])
    await mkdir(each, { recursive: true, mode: 0o700 })
  await sweepTemporary(folder.root)
  const layout = join(folder.root, 'oci-layout')
  if (!(await stat(layout).catch(missing))) await replaceFile(layout, '{"imageLayoutVersion":"1.0.0"}', 0o600)
}

// More than a file system keeps beside the name of a file.
const probe = Buffer.alloc(65_536)

/** Writes a file, syncs it and removes it. @throws the system's error, also that of a full disk */
export async function requireWritable({ root }: ContentFolder): Promise<void> {
  const file = join(root, 'probe')
  try {
    await replaceFile(file, probe, 0o600)
  } finally {
    await unlink(file).catch(missing)
  }
}

/** For `catch`: a file that does not exist is no error. */
export function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Removes a blob, or a folder that has taken its name; one that is missing is no error. */
export async function removeBlob(file: string): Promise<void> {
  try {
    await unlink(file)
  } catch (error) {
    const failure = error as NodeJS.ErrnoException
    if (failure.code === 'EISDIR') await rm(file, { recursive: true, force: true })
    else missing(failure)
  }
}
