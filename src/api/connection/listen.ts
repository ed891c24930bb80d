import { program } from '../../base/program.ts'
import type { FastifyInstance, FastifyListenOptions } from 'fastify'
import type { AddressInfo } from 'node:net'
import { addressWithPort, canonicalAddress } from '../../base/address.ts'
import { ConfigurationError, StartError } from '../../errors/start-error.ts'
import type { LocalServer } from './local-server.ts'

/** The socket of systemd is not bound to the address and port of the configuration. */
export class SocketMismatch extends ConfigurationError {
  override readonly name = 'SocketMismatch'
}

interface Place {
  readonly address: string
  readonly port: number
}

export interface ListenOptions extends Place {
  /** Number of sockets inherited from systemd; they stay open during restarts, so no connection is refused. */
  readonly inherited: number
  /** The local socket for root of this host. */
  readonly local: LocalServer
}

// As many as the kernel allows (net.core.somaxconn): a restart must not refuse connections.
export const backlog = 4_096
// sd_listen_fds(3): inherited sockets begin here.
const firstListenFd = 3

/**
 * Listens on the local socket, then on the port; if one fails, it listens on neither.
 * @throws StartError, SocketMismatch, and the system's error where no advice is known
 */
export async function listen(app: FastifyInstance, { local, ...place }: ListenOptions): Promise<AddressInfo> {
  await app.ready()
  await local.listen((request, response) => app.routing(request, response))
  try {
    return await listenTcp(app, place)
  } catch (error) {
    await local.close()
    throw adviseOn(error, place)
  }
}

/** Listens on the inherited socket, or on a new one. */
async function listenTcp(
  app: FastifyInstance,
  { address, port, inherited }: Omit<ListenOptions, 'local'>,
): Promise<AddressInfo> {
  if (inherited > 1) {
    throw new SocketMismatch(
      `${program.daemon}.socket listens on ${inherited} addresses, the daemon supports one: ` +
        `put an empty ListenStream= before the new one with: systemctl edit ${program.daemon}.socket`,
    )
  }
  if (inherited === 1) {
    // Compared in the same turn of the event loop: no client may be served on a socket that the configuration does not name.
    const refusal = new Promise<never>((_, reject) => {
      app.server.once('listening', () => {
        const mismatch = compare(app.server.address() as AddressInfo, { address, port })
        if (!mismatch) return
        // After Fastify's own listener, which asks the server for its address.
        process.nextTick(() => app.server.close())
        reject(mismatch)
      })
    })
    // Node accepts a descriptor here; Fastify's types only know addresses. Without a host Fastify would listen on a second address.
    const options = { fd: firstListenFd, host: address, backlog } as FastifyListenOptions
    await Promise.race([app.listen(options), refusal])
    return app.server.address() as AddressInfo
  }
  await listenOnHost(address, (host) => app.listen({ host, port, backlog }))
  return app.server.address() as AddressInfo
}

/** Calls `listen` with an address. `::` is both families, and only IPv4 on a machine without IPv6. */
export async function listenOnHost(
  address: string,
  listen: (host: string) => Promise<unknown>,
): Promise<void> {
  try {
    await listen(address)
  } catch (error) {
    if (address !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error
    await listen('0.0.0.0')
  }
}

/** Adds advice for the operator to an error of bind(2) or listen(2). */
function adviseOn(error: unknown, place: Place): unknown {
  const { code } = error as NodeJS.ErrnoException
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: `another process listens there: find it with ss -ltnp 'sport = :${place.port}' and end it, or set api.port`,
    EADDRNOTAVAIL: 'this host does not have the address: see ip -brief address, and correct api.address',
    EACCES: `a port below 1024 needs root: start it with systemctl start ${program.daemon}, or set api.port`,
  }
  const words = code === undefined ? undefined : advice[code]
  if (words === undefined) return error
  return new StartError(`cannot listen on ${describe(place)}: ${words}`, { cause: error })
}

function compare(bound: Place, wanted: Place): SocketMismatch | undefined {
  // On a machine without IPv6, systemd binds 0.0.0.0 for every address.
  const isSame =
    canonicalAddress(bound.address) === canonicalAddress(wanted.address) ||
    (wanted.address === '::' && bound.address === '0.0.0.0')
  if (isSame && bound.port === wanted.port) return undefined
  return new SocketMismatch(
    `${program.daemon}.socket listens on ${describe(bound)}, the configuration says ${describe(wanted)}: ` +
      `change one of them; the socket with: systemctl edit ${program.daemon}.socket`,
  )
}

const describe = ({ address, port }: Place) => addressWithPort(address, port)
