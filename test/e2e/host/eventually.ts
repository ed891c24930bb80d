import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until a check passes, tried every 25 ms; after the time limit its last failure is thrown. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 15_000): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
    await sleep(25)
  }
}
