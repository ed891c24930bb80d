import { randomUUID } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { StoredChange, Worked } from './store.ts'
import type { Trials } from './trials.ts'

/** What this host reaches beyond its links, which a change of its network may take away. */
export interface Outside {
  /** Whether a name server of this host answers now, whatever it answers. Takes two seconds at most. */
  answersNames(): Promise<boolean>
  readonly platform: {
    isConnected(): boolean
    /** Has the link to the platform send a heartbeat at once, on a new connection. */
    reconnect(): void
    /** Registers a listener, called for each reply to a heartbeat. @param connectedSince its connection was made after this time, monotonic milliseconds */
    onBeat(listener: (connectedSince: number) => void): void
  }
}

export const worksNow = async ({ answersNames, platform }: Outside): Promise<Worked> => ({
  names: await answersNames(),
  platform: platform.isConnected(),
})

const resolveMs = 1_800
// These come from a server that answers. resolved says SERVFAIL where none answers it.
const answers: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'EREFUSED', 'ENOTIMP', 'EFORMERR'])

/** Asks the name servers of this host for a name that does not exist, a new one each time, so that no cache answers. */
export async function answersNames(): Promise<boolean> {
  const resolver = new Resolver({ timeout: resolveMs, tries: 1 })
  // Of several servers the second one is asked after the time of the first.
  const timer = setTimeout(() => resolver.cancel(), resolveMs)
  try {
    await resolver.resolve4(`${randomUUID()}.test`)
    return true
  } catch (error) {
    return answers.has((error as NodeJS.ErrnoException).code)
  } finally {
    clearTimeout(timer)
  }
}

interface OutsideWatchOptions {
  readonly trials: Pick<Trials, 'find' | 'onApplied' | 'onEnd' | 'hasHeard' | 'hear' | 'fail'>
  readonly outside: Outside
  readonly pause: (ms: number) => Promise<void>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
}

// A login on the platform, and a name server that is asked again by resolved, take some seconds; the window is longer.
const limitMs = 20_000
const againMs = 500

/**
 * Watches the outside in a trial: what worked before it, and does not within 20 seconds after the apply, ends the trial. The link to the platform
 * connects anew after the apply and after the end; its heartbeats are what the platform is heard by.
 */
export function watchOutside({ trials, outside, pause, clock, log }: OutsideWatchOptions): void {
  const { platform } = outside

  /** What worked before and does not now; undefined where the change is decided. */
  async function missing({ uid, worked }: StoredChange, hadNames: boolean) {
    const names = hadNames || worked?.names !== true || (await outside.answersNames())
    if (trials.find(uid).state !== 'trial') return undefined
    const lost = [
      ...(names ? [] : ['the name servers']),
      ...(worked?.platform === true && !trials.hasHeard(uid) ? ['the platform'] : []),
    ]
    return { names, lost }
  }

  async function watch(change: StoredChange): Promise<void> {
    const until = clock.monotonic() + limitMs
    let hasNames = false
    for (;;) {
      const found = await missing(change, hasNames)
      if (found === undefined || found.lost.length === 0) return
      hasNames = found.names
      if (clock.monotonic() >= until) {
        await trials.fail(
          change.uid,
          `${found.lost.join(' and ')} answered before the change, and not after it`,
        )
        return
      }
      await pause(againMs)
    }
  }

  trials.onApplied((change) => {
    platform.reconnect()
    watch(change).catch((error: unknown) =>
      log.error(
        { err: error, uid: change.uid },
        'it is not known what a change of the network has taken away',
      ),
    )
  })
  trials.onEnd(({ state }) => {
    if (state !== 'confirmed') platform.reconnect()
  })
  platform.onBeat((connectedSince) => {
    trials
      .hear(connectedSince)
      .catch((error: unknown) =>
        log.error({ err: error }, 'the platform could not confirm a change of the network'),
      )
  })
}
