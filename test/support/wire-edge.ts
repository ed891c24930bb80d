import type { AddressInfo } from 'node:net'
import { createHttpsServer, type HttpsServerOptions } from '../../src/api/connection/https-server.ts'
import { clientFromAnywhere } from '../../src/base/client.ts'
import { captureLog, generous, makeMaterial } from './https-server.ts'
import { createTestEdge, type TestEdge, type TestEdgeOptions } from './test-edge.ts'

/** An edge that is asked over real connections. */
export interface WireEdge {
  readonly edge: TestEdge
  readonly port: number
  /** What clients trust, PEM. */
  readonly cert: string
  stop(): Promise<void>
}

/** An edge behind the daemon's own HTTPS server, on a free port of 127.0.0.1. Its limits are wide where nothing is said. */
export async function createWireEdge(
  options: TestEdgeOptions,
  limits: Partial<Pick<HttpsServerOptions, 'timeouts' | 'body' | 'connections'>> = {},
): Promise<WireEdge> {
  const material = await makeMaterial()
  const https = createHttpsServer({
    material,
    timeouts: generous,
    body: { minimumBytesPerSecond: 1, windowSeconds: 60 },
    connections: { maximum: 100, maximumPerAddress: 100 },
    clientOf: clientFromAnywhere,
    log: captureLog().log,
    ...limits,
  })
  const edge = await createTestEdge({ ...options, serverFactory: https.serverFactory, https })
  await edge.app.listen({ port: 0, host: '127.0.0.1' })
  return {
    edge,
    port: (edge.app.server.address() as AddressInfo).port,
    cert: material.cert,
    async stop() {
      https.closeConnections()
      https.closeIdle()
      await edge.stop()
      https.stop()
    },
  }
}
