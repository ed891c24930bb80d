// A page that shows a host would poll a dozen paths. The rooms say what of theirs changes (`states` of `root/room.ts`); while a client follows, all
// of them are read once a second, once for all clients, and a state that differs is sent. So a burst of changes is one message, nothing runs while
// no client follows, and a room needs no hook for each of its changes. A message is no event: it has no id, is not stored, and each connection begins
// with all states as they are. A client that reads slowly gets the newest state when it has room, and none of those between.

import { hash } from 'node:crypto'
import type { Role } from '../base/role.ts'
import type { StateSource } from '../root/room.ts'
import type { EventStream } from './event-stream.ts'
import type { StateMessage } from './schemas.ts'

/** What clients follow of the rooms. */
export interface States {
  /** Adds sources; to be called before the port opens. */
  add(sources: readonly StateSource[]): void
  /**
   * Sends all states that the caller may have, then each that has changed, until the stream ends.
   * @param may whether the caller may have what needs this role
   */
  follow(stream: Pick<EventStream, 'send' | 'signal'>, may: (access: Role) => boolean): Promise<void>
}

interface Held {
  readonly source: StateSource
  /** Undefined until it is read. */
  message: StateMessage | undefined
  isReading: boolean
}

const everySecondMs = 1_000

/** @param everyMs pause between two readings */
export function createStates(everyMs = everySecondMs): States {
  const held: Held[] = []
  const wakes = new Set<() => void>()
  let timer: NodeJS.Timeout | undefined

  async function look(each: Held): Promise<void> {
    // One that takes longer than the pause is not asked twice at once.
    if (each.isReading) return
    each.isReading = true
    try {
      const { source } = each
      const state = (await source.read()) ?? null
      const sum = sumOf([state, source.behind?.()])
      if (sum === each.message?.sum) return
      each.message = { state, sum, paths: [...source.paths] }
      for (const wake of wakes) wake()
    } catch {
      // The reads of its room say why, and clients that make them get the reason.
    } finally {
      each.isReading = false
    }
  }

  function lookAtAll(): void {
    for (const each of held) void look(each)
    timer = setTimeout(lookAtAll, everyMs).unref()
  }

  function begin(wake: () => void): void {
    wakes.add(wake)
    if (timer) return
    // What was read for earlier clients may be old.
    for (const each of held) each.message = undefined
    lookAtAll()
  }

  function end(wake: () => void): void {
    wakes.delete(wake)
    if (wakes.size > 0) return
    clearTimeout(timer)
    timer = undefined
  }

  return {
    add: (sources) =>
      void held.push(...sources.map((source) => ({ source, message: undefined, isReading: false }))),
    async follow({ send, signal }, may) {
      const sent = new Map<Held, StateMessage>()
      const own = held.filter(({ source }) => may(source.access))
      let woken: PromiseWithResolvers<void> = Promise.withResolvers()
      const wake = () => woken.resolve()
      signal.addEventListener('abort', wake)
      begin(wake)
      try {
        while (!signal.aborted) {
          woken = Promise.withResolvers()
          for (const each of own) {
            const { message } = each
            if (message === undefined || message === sent.get(each)) continue
            sent.set(each, message)
            await send({ event: each.source.type, data: message })
          }
          await woken.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        end(wake)
      }
    },
  }
}

const sumOf = (value: unknown) => hash('sha256', JSON.stringify(value), 'base64url').slice(0, 22)
