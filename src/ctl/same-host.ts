import { addressWithPort } from '../base/address.ts'
import { createClient, type Client, type Context } from './client.ts'
import { readPrivate, writePrivate } from './folder.ts'
import { createSessions } from './session.ts'
import { parseHost, type HostTarget } from './target.ts'
import { createTransport } from './transport.ts'

/** The host of a command at another of its addresses. */
export interface SameHost {
  readonly client: Client
  close(): void
}

type Ground = Pick<Context, 'line' | 'protocol' | 'folder'>

/**
 * A client for a host that has another address now. Its key has to be the one that is known for the host, so another machine at the
 * address gets nothing (Failure untrusted), and both share the session.
 * @param known as the host is known to the user
 * @param address without a port, which stays the same
 */
export function atAddress(
  { line, protocol, folder }: Ground,
  known: HostTarget,
  address: string,
): SameHost & { readonly target: HostTarget } {
  const named = parseHost(addressWithPort(address, known.port), folder())
  const { keyFile, sessionFile, lockFile } = known
  const target = { ...named, keyFile, sessionFile, lockFile }
  const transport = createTransport(target, {
    expected: undefined,
    // The key is known; where its file was removed meanwhile, the user is not asked for another one.
    ask: () => undefined,
    say: () => undefined,
  })
  const client = createClient({ target, transport, user: line.options.user, protocol })
  return { target, client, close: () => transport.close() }
}

/**
 * Knows a host by another address from now on: the last request has shown the key of the host there.
 * @param movesSession whether the host has no longer the address that it was known by, so that the session goes along
 */
export async function knowByAddress(
  { protocol, folder }: Pick<Ground, 'protocol' | 'folder'>,
  known: HostTarget,
  address: string,
  movesSession: boolean,
): Promise<HostTarget> {
  const next = parseHost(addressWithPort(address, known.port), folder())
  if (next.keyFile === known.keyFile) return next
  const key = readPrivate(known.keyFile)
  if (key !== undefined) writePrivate(next.keyFile, key)
  if (movesSession) {
    const sessions = createSessions(known, protocol)
    const session = sessions.read()
    // Its renewal is valid once, so it is kept in one place.
    if (session !== undefined) {
      await createSessions(next, protocol).put(session)
      await sessions.remove()
    }
  }
  return next
}
