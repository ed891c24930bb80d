// A browser that downloads a file by a link sends no Authorization header, and the pages use no cookies. With a token in the address the session
// would stand in histories and logs of proxies; read by a script, a file of 40 GB would go through the memory of the page. So the page asks for a
// ticket, which stands for the token of its request: for one GET of one path, and for half a minute. The guard redeems it where it would read the
// token otherwise (`guard.ts`); nothing after the guard knows of tickets, so rights, audit and the end of the session are as with the token.

import { randomBytes } from 'node:crypto'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../system/clock.ts'
import type { Authenticate, Redeem } from './access.ts'
import { apiErrors } from './codes.ts'

/** Milliseconds: a ticket is used by a click at once; a slow connection still has time to begin. */
const lifetimeMs = 30_000
// A page may offer a list of files, and a person may click on several.
const mostOfSession = 16

/** A ticket as its holder gets it. */
interface Ticket {
  readonly ticket: string
  /** The path with the ticket, to be asked for as it is. */
  readonly downloadPath: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** One-time tickets for downloads, in memory: a restart of the daemon makes them void. */
export interface Tickets {
  /**
   * @param caller the session that asks
   * @param token its access token, which the ticket stands for
   * @param path with the query, as it will be asked for
   * @throws AppError TooManyRequests
   */
  issue(caller: { readonly sessionUid: string }, token: string, path: string): Ticket
  /**
   * The caller of a request that shows a ticket. The ticket is void afterwards, whatever the result, so a ticket that was seen by others is of
   * no use to them.
   * @returns `undefined` for a ticket that is unknown, used, expired or of another path, or whose session or its token has ended
   */
  readonly redeem: Redeem
}

interface Held {
  readonly sessionUid: string
  readonly token: string
  readonly path: string
  /** Monotonic milliseconds. */
  readonly voidAt: number
}

/** @param authenticate the caller of an access token; asked when a ticket is used, so that an ended session has no ticket */
export function createTickets({
  authenticate,
  clock,
}: {
  readonly authenticate: Authenticate
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}): Tickets {
  const held = new Map<string, Held>()

  // The oldest first, since all live equally long.
  function forgetExpired(now: number): void {
    for (const [ticket, { voidAt }] of held) {
      if (voidAt > now) return
      held.delete(ticket)
    }
  }

  return {
    issue({ sessionUid }, token, path) {
      const now = clock.monotonic()
      forgetExpired(now)
      const own = [...held.values()].filter((each) => each.sessionUid === sessionUid)
      const [oldest] = own
      if (oldest && own.length >= mostOfSession)
        throw new AppError(
          apiErrors.TooManyRequests,
          `this session has ${own.length} unused tickets; use one, or wait until the oldest is void`,
          { retryAfterSec: Math.ceil((oldest.voidAt - now) / 1_000) },
        )
      const ticket = randomBytes(32).toString('base64url')
      held.set(ticket, { sessionUid, token, path, voidAt: now + lifetimeMs })
      return { ticket, downloadPath: withTicket(path, ticket), expiresAt: clock.now() + lifetimeMs }
    },
    redeem({ method, originalUrl, query }) {
      const { ticket } = query as { readonly ticket?: unknown }
      if (typeof ticket !== 'string') return undefined
      const found = held.get(ticket)
      held.delete(ticket)
      if (!found || found.voidAt <= clock.monotonic()) return undefined
      const isMeant = method === 'GET' && originalUrl === withTicket(found.path, ticket)
      return isMeant ? authenticate(found.token) : undefined
    },
  }
}

const withTicket = (path: string, ticket: string) =>
  `${path}${path.includes('?') ? '&' : '?'}ticket=${ticket}`
