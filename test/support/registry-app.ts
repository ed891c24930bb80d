import type { AddressInfo } from 'node:net'
import { createHttpsServer, type HttpsServerOptions } from '../../src/api/connection/https-server.ts'
import { createServer } from '../../src/api/server.ts'
import { clientFromAnywhere } from '../../src/base/client.ts'
import type { Replies } from '../../src/api/replies.ts'
import type { TlsMaterial } from '../../src/system/tls-options.ts'
import { captureLog, generous } from './https-server.ts'

/** As a registry replies: cacheable where a route says so, and with errors of its own form. */
const registryReplies: Replies = {
  headers: { 'docker-distribution-api-version': 'registry/2.0' },
  errorType: 'application/json',
  errorBody: ({ code, message }) => ({ errors: [{ code: code.toUpperCase(), message }] }),
}

export const blob = 'x'.repeat(1_000)

/** A second app, beside the service API in the same process: blobs under names with slashes, on a listener of its own. */
export async function startRegistry(
  material: TlsMaterial,
  limits: Pick<HttpsServerOptions, 'connections'> & Partial<Pick<HttpsServerOptions, 'body'>>,
) {
  const { log, lines } = captureLog()
  const https = createHttpsServer({
    ...{ material, log, timeouts: generous, replies: registryReplies, clientOf: clientFromAnywhere },
    body: { minimumBytesPerSecond: 1, windowSeconds: 60 },
    ...limits,
  })
  const { app, requests } = createServer({
    ...{ log, bodyLimitBytes: 1_000, mode: 'airgap', replies: registryReplies, slashParameter: 'name' },
    serverFactory: https.serverFactory,
    identify: () => undefined,
    onAuthenticated: () => undefined,
  })
  app.get<{ Params: { name: string; digest: string } }>(
    '/v2/:name/blobs/:digest',
    { config: { access: 'open' } },
    async ({ params: { name, digest } }, reply) =>
      reply
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('docker-content-digest', digest)
        .header('repository', name)
        .type('application/octet-stream')
        .send(Buffer.from(blob)),
  )
  app.put(
    '/v2/:name/blobs/uploads/:id',
    { config: { access: 'open', audit: false } },
    async (request) => request.params,
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return {
    port: (app.server.address() as AddressInfo).port,
    requests,
    lines,
    async stop() {
      https.closeConnections()
      https.closeIdle()
      await app.close()
      https.stop()
    },
  }
}
