import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createFeeder, type Fed } from '../../../src/api/connection/feeder.ts'

/** A connection with so many pieces; each takes a millisecond of the given clock. */
function connection(
  name: string,
  pieces: number,
  taken: string[],
  spend: () => void,
): Fed & { left(): number } {
  let left = pieces
  return {
    turnName: name,
    isReady: () => left > 0,
    takePiece() {
      left -= 1
      taken.push(name)
      spend()
    },
    left: () => left,
  }
}

function setUp(turnMs: number, costMs = 1) {
  let now = 0
  const taken: string[] = []
  const feeder = createFeeder({ turnMs, now: () => now })
  return {
    ...{ feeder, taken },
    wait: (ms: number) => (now += ms),
    connect: (name: string, pieces: number) => connection(name, pieces, taken, () => (now += costMs)),
  }
}

it('the first piece is parsed at once, as for a client that waits for each reply', () => {
  const { feeder, taken, connect } = setUp(4)
  feeder.arrived(connect('a', 1))
  expect(taken).toEqual(['a'])
})

it('all connections together get the time of one turn, and the others go on in the next', async () => {
  const { feeder, taken, connect } = setUp(4)
  const all = Array.from({ length: 60 }, (_, index) => connect(`c${index}`, 10))
  for (const each of all) feeder.arrived(each)
  const perTurn: number[] = []
  let before = 0
  while (all.some((each) => each.left() > 0)) {
    await nextTurn()
    perTurn.push(taken.length - before)
    before = taken.length
  }
  expect(taken).toHaveLength(600)
  // The pieces of this test before its first turn are counted with that turn.
  expect(Math.max(...perTurn.slice(1))).toBe(4)
  expect(feeder.counts()).toMatchObject({ pieces: 600, waiting: 0 })
})

it('a name with many connections waits for itself, not the others', async () => {
  const { feeder, taken, connect } = setUp(4)
  for (let index = 0; index < 60; index += 1) feeder.arrived(connect('flood', 100))
  const before = taken.length
  feeder.offer(connect('ping', 1))
  while (!taken.includes('ping')) await nextTurn()
  expect(taken.indexOf('ping') - before).toBeLessThanOrEqual(1)
})

it('a machine that is too busy to come back in time parses all the same', async () => {
  const { feeder, taken, connect, wait } = setUp(4)
  feeder.offer(connect('a', 3))
  // Longer than a turn, before the tick in which the piece would be parsed.
  wait(100)
  while (taken.length < 3) {
    await nextTurn()
    wait(100)
  }
  expect(feeder.counts().waiting).toBe(0)
})

it('each turn parses at least one piece, however long that takes', async () => {
  const { feeder, taken, connect } = setUp(4, 50)
  feeder.offer(connect('a', 5))
  // The first one needs no turn of its own.
  for (let turn = 1; turn <= 6; turn += 1) {
    await nextTurn()
    expect(taken.length).toBeLessThanOrEqual(turn + 1)
  }
  expect(taken).toHaveLength(5)
})

it('no piece stays behind, at whichever reading of the clock the machine was stopped', async () => {
  const readings = async (stopAt: number) => {
    let count = 0
    let now = 0
    const taken: string[] = []
    const feeder = createFeeder({
      turnMs: 4,
      now: () => {
        count += 1
        if (count === stopAt) now += 100
        return now
      },
    })
    const all = ['a', 'b', 'c'].map((name) => connection(name, 4, taken, () => (now += 1)))
    for (const each of all) feeder.arrived(each)
    for (let turn = 0; turn < 20 && taken.length < 12; turn += 1) await nextTurn()
    expect(taken, `stopped at reading ${stopAt}`).toHaveLength(12)
    return count
  }
  const all = await readings(0)
  for (let stopAt = 1; stopAt <= all; stopAt += 1) await readings(stopAt)
})
