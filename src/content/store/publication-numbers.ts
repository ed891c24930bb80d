import { readFile } from 'node:fs/promises'
import { createLock } from '../../base/lock.ts'
import { replaceFile } from '../../system/files.ts'
import { missing } from './folder.ts'

/**
 * Numbers publications: each gets the time of its clock, or one more than the highest number before. So the newest bundle is the one that
 * was published last also where the clock was set back.
 * @param file has the highest number, also of bundles that were deleted since; if it is lost, the bundles that are there count
 * @param highest number of these
 * @returns the number of a publication at a time, milliseconds since 1970
 */
export function createPublicationNumbers({
  file,
  highest,
}: {
  readonly file: string
  readonly highest: () => number
}): (publishedAt: number) => Promise<number> {
  const lock = createLock()
  return (publishedAt) =>
    lock(async () => {
      const kept = Number(await readFile(file, 'utf8').catch(missing))
      const before = Math.max(highest(), Number.isSafeInteger(kept) ? kept : 0)
      const publication = Math.max(publishedAt, before + 1)
      await replaceFile(file, `${publication}\n`, 0o600)
      return publication
    })
}
