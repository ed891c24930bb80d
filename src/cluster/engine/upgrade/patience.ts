import { setTimeout as delay } from 'node:timers/promises'

/** What came of a run of kubeadm that begins with checks. */
export interface CheckedRun {
  /** Why it failed; undefined if it did not. */
  readonly failed: string | undefined
  /** Whether it failed in a check, before anything was changed, that may pass later. */
  readonly mayPass: boolean
}

/**
 * So long, milliseconds, checks of kubeadm may fail on a host that was just booted, or is busy: they need a node that is ready, and start
 * a pod, which has 15 s.
 */
const patience = { longestMs: 180_000, pauseMs: 5_000 }

/**
 * Runs kubeadm again while only its checks fail.
 * @param onAgain called before each further run
 * @returns what came of the last run
 */
export async function untilChecksPass<T extends CheckedRun>(
  run: () => Promise<T>,
  onAgain: (last: T) => void,
  { longestMs, pauseMs } = patience,
): Promise<T> {
  const end = Date.now() + longestMs
  for (;;) {
    const ended = await run()
    if (ended.failed === undefined || !ended.mayPass || Date.now() > end) return ended
    onAgain(ended)
    await delay(pauseMs)
  }
}
