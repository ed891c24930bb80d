import { createHash } from 'node:crypto'

/** Random numbers that are the same for the same seed (mulberry32), and what tests choose with them. */
export function createRandom(seed: number) {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** An integer from 0 to `end`, exclusive. */
  const below = (end: number) => Math.floor(next() * end)
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T
  return {
    below,
    isChosen: (chance: number) => next() < chance,
    pick,
    /** The text of so many pieces. */
    text: (pieces: readonly string[], count: number): string =>
      Array.from({ length: count }, () => pick(pieces)).join(''),
    /** Up to `count` different ones in any order. */
    several: <T>(from: readonly T[], count: number): T[] => {
      const rest = [...from]
      return Array.from(
        { length: Math.min(count, rest.length) },
        () => rest.splice(below(rest.length), 1)[0] as T,
      )
    },
  }
}

export type Random = ReturnType<typeof createRandom>

let calls = 0

/** Bytes that do not compress, the same in every run: those of the seed, or without one of the number of this call. */
export const noise = (sizeBytes: number, seed: number | string = `call ${(calls += 1)}`): Buffer =>
  createHash('shake256', { outputLength: sizeBytes }).update(String(seed)).digest()
