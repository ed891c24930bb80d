import { describe, expect, it } from 'vitest'
import { createFairTurns } from '../../../src/base/fair-queue.ts'

/** Pieces of work that end when they are told to. */
function pieces(atOnce: number, waiting = 16) {
  const turns = createFairTurns({ atOnce, waiting, refusal: () => new Error('refused') })
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const start = (group: string, name: string, signal?: AbortSignal) =>
    turns.run(
      { group, member: '' },
      () => {
        begun.push(name)
        return new Promise<void>((resolve) => ends.set(name, resolve))
      },
      signal,
    )
  const end = async (name: string) => {
    ends.get(name)?.()
    // All that follows from it is in microtasks.
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { start, end, begun }
}

describe('fair turns', () => {
  it('a turn that began at once counts: another group comes before the second of the same', async () => {
    const { start, end, begun } = pieces(1)
    const all = [start('a', 'a1'), start('a', 'a2'), start('a', 'a3'), start('b', 'b1')]
    for (const each of ['a1', 'b1', 'a2', 'a3']) await end(each)
    await Promise.all(all)
    expect(begun).toEqual(['a1', 'b1', 'a2', 'a3'])
  })

  it('a group whose turns run has the next one after groups that have none', async () => {
    const { start, end, begun } = pieces(2)
    const all = [start('a', 'a1'), start('a', 'a2'), start('a', 'a3'), start('b', 'b1'), start('c', 'c1')]
    for (const each of ['a2', 'b1', 'a1', 'c1', 'a3']) await end(each)
    await Promise.all(all)
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3'])
  })

  it('groups that wait take turns in the order in which they came, and one that gave up counts no more', async () => {
    const { start, end, begun } = pieces(1)
    const gone = new AbortController()
    const left = start('b', 'b0', gone.signal)
    await end('b0')
    await left
    const all = [start('x', 'x1'), start('b', 'b1'), start('c', 'c1'), start('b', 'b2')]
    const aborted = start('d', 'd1', gone.signal)
    gone.abort(new Error('gone'))
    await expect(aborted).rejects.toThrow('gone')
    for (const each of ['x1', 'b1', 'c1', 'b2']) await end(each)
    await Promise.all(all)
    expect(begun).toEqual(['b0', 'x1', 'b1', 'c1', 'b2'])
  })
})
