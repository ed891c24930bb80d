import type { FastifyInstance, FastifyListenOptions } from 'fastify'
import type { AddressInfo } from 'node:net'

/** The socket that systemd holds is not the one that the configuration asks for. */
export class SocketMismatch extends Error {
  override readonly name = 'SocketMismatch'
}

export interface ListenOptions {
  readonly address: string
  readonly port: number
  /** Socket inherited from systemd; it stays open over restarts, so no connection is refused. */
  readonly listenFd: number | undefined
}

// As many as the kernel allows (net.core.somaxconn): a restart must not refuse anyone.
const backlog = 4_096

/**
 * Takes connections: on the inherited socket, or on one of its own. `::` is both families, and IPv4 alone on a
 * machine without IPv6.
 * @throws SocketMismatch, and the system's error such as EADDRINUSE
 */
export async function listen(
  app: FastifyInstance,
  { address, port, listenFd }: ListenOptions,
): Promise<AddressInfo> {
  if (listenFd !== undefined) {
    // Node takes a descriptor here; Fastify's types only know addresses.
    await app.listen({ fd: listenFd, backlog } as FastifyListenOptions)
    const bound = app.server.address() as AddressInfo
    const isSame =
      bound.port === port && (bound.address === address || (isAny(address) && isAny(bound.address)))
    if (isSame) return bound
    await app.close()
    throw new SocketMismatch(
      `edgehostd.socket listens on ${describe(bound)}, the configuration says ${describe({ address, port })}: ` +
        'change one of them; the socket with: systemctl edit edgehostd.socket',
    )
  }
  try {
    await app.listen({ host: address, port, backlog })
  } catch (error) {
    if (address !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error
    await app.listen({ host: '0.0.0.0', port, backlog })
  }
  return app.server.address() as AddressInfo
}

const isAny = (address: string) => address === '::' || address === '0.0.0.0'

const describe = ({ address, port }: { address: string; port: number }) =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
