import { describeEntries } from '../../src/content/format/entry.ts'
import { bundleLimits, type BundleLimits } from '../../src/content/format/refusal.ts'
import { createWalk, requireWhole } from '../../src/content/format/walk.ts'

/** Walks over a whole layout as `examine` does, in memory. @throws AppError */
export function walkLayout(
  blobs: ReadonlyMap<string, Buffer>,
  indexFile: Uint8Array,
  limits: BundleLimits = bundleLimits,
) {
  const walk = createWalk(limits)
  const get = (digest: string) => blobs.get(digest.slice(7))
  const waiting = [...walk.addIndexFile(indexFile)]
  for (const { digest, kind } of waiting) {
    const bytes = kind === 'document' ? get(digest) : undefined
    if (bytes) waiting.push(...walk.addDocument(digest, bytes))
  }
  const isHeld = (digest: string) => get(digest) !== undefined
  requireWhole(walk, isHeld)
  return { walk, ...describeEntries({ walk, isHeld, readConfig: ({ digest }) => get(digest), limits }) }
}
