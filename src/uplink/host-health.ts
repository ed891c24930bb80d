import type { HostEvent } from './event-queue.ts'
import type { HostHealth } from './link.ts'

/** Says how this host is, and reports an event when that changes. */
export function createHostHealth(
  failing: () => readonly string[],
  report: (event: HostEvent) => void,
): () => HostHealth {
  let known = ''
  return () => {
    const names = failing().join(', ')
    if (names !== known)
      report({
        component: 'edgehostd',
        ...(names === ''
          ? { severity: 'Normal', reason: 'HostReady', message: 'all checks of the host hold again' }
          : { severity: 'Warning', reason: 'HostNotReady', message: `checks of the host fail: ${names}` }),
      })
    known = names
    return names === ''
      ? { state: 'healthy', message: '' }
      : { state: 'unhealthy', message: `checks fail: ${names}`.slice(0, 1_024) }
  }
}
