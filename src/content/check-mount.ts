import { NamedFileUnusable } from '../errors/start-error.ts'
import { isForRoot } from '../errors/unreadable.ts'
import type { Finding, ReferenceCheck } from '../room.ts'
import { contentRoot } from './store/folder.ts'
import { requireMount } from './store/mount.ts'

const path = 'content.requireMount'

/** Checks that a file system is mounted at the folder of the content, if it has to be. */
export async function checkMount({ value, stateDirectory, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  if (value(path) !== true) return []
  const directory = value('content.directory')
  const root = contentRoot(typeof directory === 'string' ? directory : '', stateDirectory)
  try {
    await requireMount(root)
    return []
  } catch (error) {
    if (error instanceof NamedFileUnusable) return [{ path, message: error.message, isOfFile: true }]
    if (!isForRoot({ cause: error })) throw error
    onUnseen(root)
    return []
  }
}
