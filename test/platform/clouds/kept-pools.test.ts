import { setImmediate as turnOfLoop, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { heapBytes, createKeptPools } from '../../../src/platform/clouds/kept-pools.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { platformErrors } from '../../../src/platform/codes.ts'
import type { MachineRead } from '../../../src/platform/clouds/machines.ts'
import type { Machine } from '../../../src/platform/clouds/schemas.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

const machine = (uid: string, creationTimestamp = '2026-11-01T08:00:00Z'): Machine => ({
  ...{ apiVersion: 'v1', kind: 'Machine' },
  metadata: {
    ...{ annotations: {}, labels: {}, name: uid, uid, creationTimestamp },
    lastModifiedTimestamp: creationTimestamp,
  },
  spec: { imageId: '', instanceType: '', nics: [] },
  status: { health: { conditions: [], state: '' }, instanceState: 'Running' },
})
const slow = () => new AppError(platformErrors.CloudUnavailable, 'Nova does not answer in time')
const refused = () =>
  new AppError(platformErrors.CloudCredentialsRefused, 'the cloud refuses these credentials')

/** Comes after a timer of 0 ms that is set now, and before one of 50 ms: timers of one duration come in the order in which they were set. */
async function afterNoTime(): Promise<string> {
  for (let turn = 0; turn < 20; turn += 1) await turnOfLoop()
  for (let timer = 0; timer < 2; timer += 1) await sleep(1)
  return 'it waits'
}

/** Pools over reads that a test answers. */
function createWorld(memory: { readonly poolBytes?: number; readonly allBytes?: number } = {}) {
  const clock = createTurningClock()
  const stop = new AbortController()
  const { log, texts } = captureLog()
  const pools = createKeptPools({ clock, log, stopping: stop.signal, limits: { waitMs: 50, ...memory } })
  const reads: {
    answer: (machines: Machine[]) => void
    fail: (error: Error) => void
    hold: (bytes: number) => void
    signal: AbortSignal
  }[] = []
  const read = ({ signal, hold }: MachineRead) =>
    new Promise<Machine[]>((answer, fail) => {
      const tell = (bytes: number) => {
        try {
          hold(bytes)
        } catch (error) {
          fail(error instanceof Error ? error : new Error('held', { cause: error }))
        }
      }
      reads.push({ answer, fail, hold: tell, signal })
      signal.addEventListener('abort', () => fail(slow()))
    })
  const see = async (key = 'a/b') => {
    try {
      const { machines, condition } = await pools.see(key, read)
      return [machines.map(({ metadata }) => metadata.uid).join(' '), condition?.message ?? ''].join('|')
    } catch (error) {
      return (error as AppError).code
    }
  }
  const last = () => {
    const found = reads.at(-1)
    if (!found) throw new Error('nothing was read')
    return found
  }
  return { clock, stop, reads, last, see, texts }
}

describe('the machines of a pool', () => {
  it('are read once, however many ask, and again after ten seconds', async () => {
    const { clock, reads, last, see } = createWorld()
    const asked = Array.from({ length: 50 }, () => see())
    await sleep(1)
    last().answer([machine('one')])
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['one|']))
    clock.turn(9_999)
    expect([await see(), reads.length]).toEqual(['one|', 1])
    clock.turn(1)
    const again = see()
    last().answer([machine('one'), machine('two')])
    expect([await again, reads.length]).toEqual(['one two|', 2])
  })

  it('are sorted as lists have them', async () => {
    const { last, see } = createWorld()
    const asked = see()
    last().answer([machine('old', '2026-01-01T00:00:00Z'), machine('new', '2026-02-01T00:00:00Z')])
    expect(await asked).toBe('new old|')
  })

  it('stay for five minutes where the cloud is slow, with their age; then the reason is the reply', async () => {
    const { clock, reads, last, see, texts } = createWorld()
    const first = see()
    last().answer([machine('one')])
    await first
    clock.turn(20_000)
    // This read never ends by itself.
    expect(await see()).toBe('one|as it was 20 seconds ago: the cloud has not answered yet')
    clock.turn(10_000)
    // Only the first one has waited for it.
    const second = Promise.race([see(), afterNoTime()])
    expect(await second).toBe('one|as it was 30 seconds ago: the cloud has not answered yet')
    expect(reads).toHaveLength(2)
    last().fail(slow())
    await sleep(1)
    // The read began 10 seconds ago.
    const third = see()
    last().fail(slow())
    expect(await third).toBe('one|as it was 30 seconds ago: Nova does not answer in time')
    clock.turn(269_999)
    const fourth = see()
    last().fail(slow())
    expect(await fourth).toBe('one|as it was 300 seconds ago: Nova does not answer in time')
    clock.turn(1)
    expect([await see(), reads.length]).toEqual(['CloudUnavailable', 4])
    clock.turn(10_000)
    const fifth = see()
    last().answer([machine('two')])
    expect(await fifth).toBe('two|')
    expect(texts()).toEqual(Array(3).fill('the machines of a pool could not be read'))
  })

  it('a failure is the reply for ten seconds where nothing is known, without another read', async () => {
    const { clock, reads, last, see } = createWorld()
    const first = see()
    last().fail(slow())
    expect([await first, await see(), reads.length]).toEqual(['CloudUnavailable', 'CloudUnavailable', 1])
    clock.turn(10_000)
    const second = see()
    last().answer([])
    expect(await second).toBe('|')
  })

  it('are not shown any more once the cloud refuses the credentials', async () => {
    const { clock, last, see } = createWorld()
    const first = see()
    last().answer([machine('one')])
    await first
    clock.turn(10_000)
    const second = see()
    last().fail(refused())
    expect([await second, await see()]).toEqual(['CloudCredentialsRefused', 'CloudCredentialsRefused'])
  })

  it('of other pools come while one waits', async () => {
    const { reads, see } = createWorld()
    const stuck = see('a/slow')
    const other = see('a/quick')
    reads[1]?.answer([machine('one')])
    expect(await other).toBe('one|')
    reads[0]?.fail(slow())
    expect(await stuck).toBe('CloudUnavailable')
  })

  it('of a pool that fails stay, however many other pools fail', async () => {
    const { clock, reads, see } = createWorld()
    const kept = see('a/kept')
    reads[0]?.answer([machine('one')])
    await kept
    for (let index = 0; index < 3_000; index += 1) {
      const asked = see(`a/${index}`)
      reads.at(-1)?.fail(slow())
      await asked
    }
    clock.turn(10_000)
    const again = see('a/kept')
    reads.at(-1)?.fail(slow())
    expect(await again).toBe('one|as it was 10 seconds ago: Nova does not answer in time')
  })

  it('that take too much memory for one pool are refused, and the last state stays', async () => {
    const { clock, last, see } = createWorld({ poolBytes: 10_000 })
    const first = see()
    last().hold(10_000)
    last().answer([machine('one')])
    expect(await first).toBe('one|')
    clock.turn(10_000)
    const second = see()
    last().hold(10_001)
    expect(await second).toBe(
      'one|as it was 10 seconds ago: the machines of the pool take more memory than there is for one',
    )
  })

  it('are forgotten where pools that are asked need the memory, those first that were read first', async () => {
    const one = heapBytes([machine('one')])
    const { clock, reads, last, see } = createWorld({ allBytes: 10 * one })
    for (const key of ['a/old', 'a/new']) {
      const asked = see(key)
      last().answer([machine('one')])
      await asked
      clock.turn(10_000)
    }
    const large = see('a/large')
    last().hold(8.5 * one)
    const stuck = see('a/new')
    const other = see('a/old')
    reads.at(-1)?.fail(slow())
    expect(await other).toBe('CloudUnavailable')
    expect(await stuck).toBe('one|as it was 10 seconds ago: the cloud has not answered yet')
    last().hold(0)
    reads[2]?.answer([machine('two')])
    expect(await large).toBe('two|')
  })

  it('of pools that were read in the last ten seconds are not forgotten: the next pool has to wait', async () => {
    const { clock, last, see, reads } = createWorld({ allBytes: 10_000 })
    const held = see('a/held')
    last().hold(9_500)
    const asked = see('a/next')
    last().hold(600)
    expect(await asked).toBe('CloudUnavailable')
    reads[0]?.answer([machine('one')])
    expect(await held).toBe('one|')
    clock.turn(10_000)
    const again = see('a/next')
    last().hold(600)
    last().answer([machine('two')])
    expect(await again).toBe('two|')
  })

  it('a stop ends the reads, without a line in the log', async () => {
    const { stop, see, texts } = createWorld()
    const asked = see()
    await sleep(1)
    stop.abort()
    expect([await asked, texts()]).toEqual(['CloudUnavailable', []])
  })
})
