import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../../ctl/exit-codes.ts'
import { removeOnSignal } from '../../../program/remove-on-signal.ts'
import { placeFile } from '../../../system/place-file.ts'
import type { ConfigurationFile } from './reached.ts'

export interface PlaceFilesOptions {
  /** The paths of the files are below it. */
  readonly directory: string
  /** Whether files with another content are replaced. */
  readonly replaces: boolean
}

/**
 * Writes files, and the folders that they need.
 * @returns what was written
 * @throws Failure before the first is written, if one has another content and may not be replaced
 */
export async function placeFiles(
  files: readonly ConfigurationFile[],
  { directory, replaces }: PlaceFilesOptions,
): Promise<Pick<ConfigurationFile, 'path' | 'mode'>[]> {
  const placed = files.map(({ path, ...file }) => ({ ...file, path: join(directory, path) }))
  if (!replaces) for (const { path, content } of placed) await requireOurs(path, content)
  const onBegin = removeOnSignal()
  for (const { path, mode, content } of placed) {
    try {
      await mkdir(dirname(path), { recursive: true })
      await placeFile({
        ...{ path, mode: Number.parseInt(mode, 8), onBegin },
        write: async (file) => {
          await file.writeFile(content)
          await file.sync()
        },
      })
    } catch (error) {
      throw unwritten(path, error)
    }
  }
  return placed.map(({ path, mode }) => ({ path, mode }))
}

async function requireOurs(path: string, content: string): Promise<void> {
  const present = await readFile(path, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unwritten(path, error)
  })
  if (present !== undefined && present !== content)
    throw new Failure(
      'failed',
      `${path} has another content, and nothing was written; join the two by hand (without --directory the command prints its files), or replace it with --replace`,
    )
}

const unwritten = (path: string, error: unknown) =>
  new Failure('failed', `${path} could not be written: ${(error as Error).message}`, { cause: error })
