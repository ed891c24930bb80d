import { isForRoot } from '../errors/unreadable.ts'
import type { Finding, ReferenceCheck } from '../room.ts'
import { readToken, TokenFileUnusable } from './scrape-access.ts'

const path = 'metrics.tokenFile'

/** Checks the file of the scrapers' token, where it is used. */
export async function checkTokenFile({ value, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  const file = value(path)
  if (typeof file !== 'string' || file === '' || value('metrics.enabled') === false) return []
  try {
    await readToken(file)
    return []
  } catch (error) {
    if (!(error instanceof TokenFileUnusable)) throw error
    if (!isForRoot(error)) return [{ path, message: error.message, isOfFile: true }]
    onUnseen(file)
    return []
  }
}
