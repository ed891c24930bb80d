import type { IncomingMessage, ServerResponse } from 'node:http'
import { LingeringResponse } from './unread-body.ts'

/** Bytes of replies that may wait for one caller to read them, over all its connections. */
export const mostOfCaller = 16_777_216
/** The same for all callers together. */
export const mostOfAll = 67_108_864
/** Replies in which fewer bytes wait are not counted: a connection is owed few, and they are most of all. */
const uncountedBytes = 4_096

export interface WaitingRepliesOptions {
  readonly ofCaller?: number
  readonly ofAll?: number
  /** Called for each connection that was closed. */
  readonly onClosed?: (callerName: string) => void
}

/** The bytes of replies that wait for their clients, on all servers of this process. */
export interface WaitingReplies {
  /**
   * Called when bytes of a reply have been added. Over a limit it closes the connection of that reply whose client has read nothing for longest,
   * of the caller or, in all, of the one for whom most bytes wait. A reply that is all that waits for its caller stays, whatever its size.
   */
  grown(reply: CountedResponse): void
  /** Called when the client has read a part of it. */
  progressed(reply: CountedResponse): void
  /** Called when it is sent, or lost. */
  forget(reply: CountedResponse): void
  /** Bytes that wait now. */
  bytes(): number
}

interface OfCaller {
  bytes: number
  /** The one whose client has read nothing for longest is the first: maps keep the order of insertion. */
  readonly replies: Map<CountedResponse, number>
}

export function createWaitingReplies({
  ofCaller = mostOfCaller,
  ofAll = mostOfAll,
  onClosed = () => undefined,
}: WaitingRepliesOptions = {}): WaitingReplies {
  const callers = new Map<string, OfCaller>()
  /** The caller may be another one for a later reply, but not for one that is counted. */
  const callerOf = new Map<CountedResponse, string>()
  let all = 0

  function count(reply: CountedResponse, bytes: number): OfCaller {
    const name = callerOf.get(reply) ?? reply.callerName
    const known = callers.get(name) ?? { bytes: 0, replies: new Map<CountedResponse, number>() }
    callers.set(name, known)
    callerOf.set(reply, name)
    const more = bytes - (known.replies.get(reply) ?? 0)
    known.replies.set(reply, bytes)
    known.bytes += more
    all += more
    return known
  }

  function forget(reply: CountedResponse): void {
    const name = callerOf.get(reply)
    if (name === undefined) return
    const { bytes } = count(reply, 0)
    callerOf.delete(reply)
    callers.get(name)?.replies.delete(reply)
    if (bytes === 0) callers.delete(name)
  }

  /** @returns whether there was one to close */
  function closeSlowest(name: string, { replies }: OfCaller): boolean {
    const [slowest] = replies.size > 1 ? replies.keys() : []
    if (!slowest) return false
    const { socket } = slowest.req
    // Its other replies are lost with it.
    for (const reply of [...replies.keys()]) if (reply.req.socket === socket) forget(reply)
    socket.destroy()
    onClosed(name)
    return true
  }

  const largest = () => [...callers].reduce((one, other) => (other[1].bytes > one[1].bytes ? other : one))

  return {
    grown(reply) {
      const bytes = reply.writableLength
      if (reply.destroyed || (bytes < uncountedBytes && !callerOf.has(reply))) return
      const caller = count(reply, bytes)
      const name = callerOf.get(reply) ?? reply.callerName
      while (caller.bytes > ofCaller && closeSlowest(name, caller));
      while (all > ofAll && closeSlowest(...largest()));
    },
    progressed(reply) {
      const name = callerOf.get(reply)
      const replies = name === undefined ? undefined : callers.get(name)?.replies
      const bytes = replies?.get(reply)
      if (!replies || bytes === undefined) return
      replies.delete(reply)
      replies.set(reply, bytes)
    },
    forget,
    bytes: () => all,
  }
}

/** The reply of every server, which counts what waits of it. */
export class CountedResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends LingeringResponse<Request> {
  /** For whom it counts: a user, a host, or the client of an address. */
  callerName = ''
  private waiting: WaitingReplies | undefined

  /** Called for each request before its handler. */
  countIn(waiting: WaitingReplies, callerName: string): void {
    this.waiting = waiting
    this.callerName = callerName
    this.once('close', () => waiting.forget(this))
  }

  override write(...given: unknown[]): boolean {
    const hasRoom = super.write(...(given as [unknown]))
    this.waiting?.grown(this)
    return hasRoom
  }

  override end(...given: unknown[]): this {
    super.end(...given)
    this.waiting?.grown(this)
    return this
  }
}

/** Counts a reply for this caller from now on. One by `inject` has no connection and does not count. */
export function nameCaller(reply: ServerResponse, name: string): void {
  if (reply instanceof CountedResponse) reply.callerName = name
}
