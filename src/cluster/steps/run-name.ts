import { createHash } from 'node:crypto'

/**
 * Name of the lasting run of a step, and with it of its unit: the same for the same key, so that the unit refuses a second start of the
 * same work.
 */
export function runNameOf(key: string): string {
  const readable = key
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40)
  const mark = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return readable === '' ? mark : `${readable.replace(/-$/, '')}-${mark}`
}
