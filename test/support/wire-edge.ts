import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { createTestEdge, type TestEdge, type TestEdgeOptions } from './test-edge.ts'

/** An edge that is used over real connections. */
export interface WireEdge {
  readonly edge: TestEdge
  readonly port: number
  /** The certificate that clients trust, PEM. */
  readonly cert: string
  stop(): Promise<void>
}

/** An edge that listens, on a free port of 127.0.0.1. Its limits are wide by default. */
export async function createWireEdge(
  options: TestEdgeOptions,
  limits: NonNullable<TestEdgeOptions['limits']> = {},
): Promise<WireEdge> {
  const edge = await createTestEdge({ ...options, limits })
  await edge.daemon.rooms.api.listen(0)
  return {
    edge,
    port: (edge.app.server.address() as AddressInfo).port,
    cert: readFileSync(join(edge.stateDirectory, 'tls', 'certificate.pem'), 'utf8'),
    async stop() {
      edge.app.server.closeAllConnections()
      await edge.stop()
    },
  }
}
