import { describe, expect, it } from 'vitest'
import { createBatches, type Batches } from '../../../src/content/program/content-program.ts'

/** Reads as the operating system does: a piece is copied before the next one is asked for. */
async function read({ pieces }: Batches): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const piece of pieces) parts.push(Buffer.from(piece))
  return Buffer.concat(parts)
}

const bytes = (size: number, seed = 1) => {
  const made = Buffer.alloc(size)
  for (let at = 0; at < size; at += 1) made[at] = (at * 31 + seed * 17 + (at >> 8)) & 255
  return made
}

describe('batches', () => {
  it.each([0, 1, 524_287, 524_288, 524_289, 3_000_001])(
    '%i bytes arrive as they were written, after the first line',
    async (size) => {
      const batches = createBatches('order\n')
      const whole = bytes(size)
      const arrived = read(batches)
      for (let at = 0; at < size; at += 65_521) await batches.write(whole.subarray(at, at + 65_521))
      await batches.end()
      expect((await arrived).equals(Buffer.concat([Buffer.from('order\n'), whole]))).toBe(true)
    },
  )

  it('a chunk may be reused as soon as it is written', async () => {
    const batches = createBatches('')
    const arrived = read(batches)
    const chunk = Buffer.alloc(400_000)
    for (let round = 0; round < 10; round += 1) await batches.write(chunk.fill(round))
    await batches.end()
    const whole = Buffer.concat(Array.from({ length: 10 }, (_, round) => Buffer.alloc(400_000, round)))
    expect((await arrived).equals(whole)).toBe(true)
  })

  it('a writer waits while nothing is read, and gets on when the batches are discarded', async () => {
    const batches = createBatches('')
    let isWritten = false
    const written = batches.write(bytes(2_000_000)).then(() => (isWritten = true))
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(isWritten).toBe(false)
    batches.discard()
    await written
    await batches.write(bytes(2_000_000))
    await batches.end()
  })
})
