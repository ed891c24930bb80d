import { readFile } from 'node:fs/promises'
import { replaceFile } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import { createLock } from '../../base/lock.ts'
import { missing } from './folder.ts'

/** Which entries other rooms need. A file of the content, so that it is not lost with the database. */
export interface Pins {
  /** Replaces the entries that a holder needs; none ends its pins. @param digests of entries, `sha256:<hex>` */
  set(holder: string, digests: readonly string[]): Promise<void>
  /** Digests with their holders. */
  holders(): ReadonlyMap<string, readonly string[]>
}

/** @throws the system's error; a damaged file is reported and counts as empty, since its writers pin again at their start */
export async function openPins(file: string, log: Logger): Promise<Pins> {
  let pins = await readPins(file, log)
  const lock = createLock()
  return {
    set: (holder, digests) =>
      lock(async () => {
        const wanted = [...new Set(digests)].sort()
        // So that a start writes nothing, which a full disk would refuse.
        if (isEqual(wanted, pins[holder] ?? [])) return
        const others = Object.entries(pins).filter(([name]) => name !== holder)
        const own = wanted.length === 0 ? [] : [[holder, wanted] as const]
        const next = Object.fromEntries([...others, ...own])
        await replaceFile(file, `${JSON.stringify(next)}\n`, 0o600)
        pins = next
      }),
    holders() {
      const holders = new Map<string, string[]>()
      for (const [holder, digests] of Object.entries(pins))
        for (const digest of digests) holders.set(digest, [...(holders.get(digest) ?? []), holder])
      return holders
    },
  }
}

async function readPins(file: string, log: Logger): Promise<Readonly<Record<string, readonly string[]>>> {
  const text = await readFile(file, 'utf8').catch(missing)
  if (text === undefined) return {}
  try {
    return parsePins(text)
  } catch (error) {
    log.error({ err: error, file }, 'the file of pinned content is damaged and counts as empty')
    return {}
  }
}

/** @throws Error if the text is not what `set` writes */
function parsePins(text: string): Readonly<Record<string, readonly string[]>> {
  const pins = JSON.parse(text) as unknown
  if (typeof pins !== 'object' || pins === null || Array.isArray(pins))
    throw new Error('it is no JSON object')
  for (const [holder, digests] of Object.entries(pins))
    if (!Array.isArray(digests) || !digests.every((each) => typeof each === 'string'))
      throw new Error(`the pins of ${holder} are no digests`)
  return pins as Record<string, string[]>
}

const isEqual = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((each, index) => each === other[index])
