import type { FastifyInstance, FastifyListenOptions } from 'fastify'
import { SocketAddress, type AddressInfo } from 'node:net'

/** The socket that systemd holds is not the one that the configuration asks for. */
export class SocketMismatch extends Error {
  override readonly name = 'SocketMismatch'
}

interface Place {
  readonly address: string
  readonly port: number
}

export interface ListenOptions extends Place {
  /** Sockets inherited from systemd; they stay open over restarts, so no connection is refused. */
  readonly inherited: number
}

// As many as the kernel allows (net.core.somaxconn): a restart must not refuse anyone.
const backlog = 4_096
// sd_listen_fds(3): inherited sockets begin here.
const firstListenFd = 3

/**
 * Takes connections: on the inherited socket, or on one of its own. `::` is both families, and IPv4 alone on a
 * machine without IPv6.
 * @throws SocketMismatch, and the system's error such as EADDRINUSE
 */
export async function listen(
  app: FastifyInstance,
  { address, port, inherited }: ListenOptions,
): Promise<AddressInfo> {
  if (inherited > 1) {
    throw new SocketMismatch(
      `edgehostd.socket listens on ${inherited} addresses, the daemon takes one: ` +
        'put an empty ListenStream= before the new one with: systemctl edit edgehostd.socket',
    )
  }
  if (inherited === 1) {
    // Judged before the event loop turns: nobody may be served where the configuration does not want it.
    const refusal = new Promise<never>((_, reject) => {
      app.server.once('listening', () => {
        const mismatch = compare(app.server.address() as AddressInfo, { address, port })
        if (!mismatch) return
        // After Fastify's own listener, which asks the server for its address.
        process.nextTick(() => app.server.close())
        reject(mismatch)
      })
    })
    // Node takes a descriptor here; Fastify's types only know addresses. Without a host it would look for a second one.
    const options = { fd: firstListenFd, host: address, backlog } as FastifyListenOptions
    await Promise.race([app.listen(options), refusal])
    return app.server.address() as AddressInfo
  }
  try {
    await app.listen({ host: address, port, backlog })
  } catch (error) {
    if (address !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error
    await app.listen({ host: '0.0.0.0', port, backlog })
  }
  return app.server.address() as AddressInfo
}

function compare(bound: Place, wanted: Place): SocketMismatch | undefined {
  // A machine without IPv6 has 0.0.0.0 where the unit says every address.
  const isSame =
    canonical(bound) === canonical(wanted) || (wanted.address === '::' && bound.address === '0.0.0.0')
  if (isSame && bound.port === wanted.port) return undefined
  return new SocketMismatch(
    `edgehostd.socket listens on ${describe(bound)}, the configuration says ${describe(wanted)}: ` +
      'change one of them; the socket with: systemctl edit edgehostd.socket',
  )
}

const canonical = ({ address }: Place) =>
  new SocketAddress({ address, family: address.includes(':') ? 'ipv6' : 'ipv4' }).address

const describe = ({ address, port }: Place) =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
