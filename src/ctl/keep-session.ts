import type { Client } from './client.ts'

const everyMs = 300_000

/**
 * Keeps a session alive while something is sent: it ends some time after its last renewal, two hours by default, and with it a
 * request that lasts longer. A refused token is renewed by the client.
 * @returns ends it
 */
export function keepSession(client: Pick<Client, 'ask'>, ms = everyMs): () => void {
  const ask = () => void client.ask({ method: 'GET', path: '/v1/users/current' }).catch(() => undefined)
  const timer = setInterval(ask, ms)
  return () => clearInterval(timer)
}
