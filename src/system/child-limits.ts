import type { Readable } from 'node:stream'
import type { ResultPromise } from 'execa'
import { createGrowingBuffer } from './growing-buffer.ts'

// The library has limits of its own; what it sets up for both of them takes a login half a millisecond.

type Child = Pick<ResultPromise, 'kill' | 'stdout' | 'stderr'>

/** Keeps what a program says, and ends it when that is too much. */
export function limitOutput(child: Child, maximumBytes: number) {
  let isTooMuch = false
  const collect = (stream: Readable | null) => {
    // A program decides itself how small its writes are.
    const output = createGrowingBuffer(maximumBytes)
    stream?.on('data', (chunk: Buffer) => {
      if (output.add(chunk)) return
      isTooMuch = true
      child.kill()
      // A child of it may hold the other end, and go on.
      stream.destroy()
    })
    return () => output.bytes().toString()
  }
  return { stdout: collect(child.stdout), stderr: collect(child.stderr), isTooMuch: () => isTooMuch }
}

/**
 * Ends a program whose time is up.
 * @param killAfterMs after this, nobody waits for its output any more: it may have left a child that holds it open
 */
export function limitTime(child: Child, timeoutMs: number, killAfterMs: number) {
  let isUp = false
  let timer = setTimeout(() => {
    isUp = true
    child.kill()
    timer = setTimeout(() => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    }, killAfterMs)
  }, timeoutMs)
  return { isUp: () => isUp, stop: () => clearTimeout(timer) }
}
