import { createServer, type RequestListener } from 'node:http'
import { hostBody } from './host-body.ts'
import { serviceStatus } from './test-edge.ts'

const time = '2026-01-31T08:00:00.000Z'
const sessions = ['alice', 'operator-of-the-night-shift'].map((userName, index) => ({
  ...{ uid: `3f2c5e2e-93a4-4c43-8f0e-00000000000${index}`, userName, role: 'viewer', isCurrent: index === 0 },
  ...{ address: '2001:db8:1234:5678:9abc:def0:1234:5678' },
  ...{ creationTimestamp: time, lastRenewalTimestamp: time, expirationTimestamp: time },
}))
const audits = Array.from({ length: 50 }, (_, index) => ({
  metadata: { createTimestamp: time, edgeHostId: 'edge', number: index + 1, uid: 'u' },
  spec: {
    actionType: 'update',
    actor: { actorType: 'user', uid: 'operator', address: '192.0.2.7' },
    message: 'Replace the public key that signatures of uploads are checked with',
    outcome: 'refused',
    resource: { kind: 'user' },
  },
}))
const list = (items: readonly unknown[]) => ({
  items,
  listmeta: { continue: '', count: items.length, limit: items.length, offset: 0 },
})
const head = { number: 50, hash: 'a'.repeat(64) }
const current = '/v1/edge-mgmt/edgehosts/current'

/** A daemon on a socket with constant replies to the commands of edgehostctl. */
export async function startDaemonSocket(
  path: string,
): Promise<{ asked: string[]; stop: () => Promise<void> }> {
  const asked: string[] = []
  const replies: Readonly<Record<string, unknown>> = {
    '/v1/ping': { msg: 'pong' },
    [current]: JSON.parse(await hostBody()),
    [`${current}/status`]: serviceStatus('airgap'),
    [`${current}/audits`]: list(audits),
    [`${current}/audits/verify`]: { isIntact: true, count: 50, first: 1, head, unwritten: 0 },
    '/v1/users/sessions': list(sessions),
  }
  const answer: RequestListener = ({ url = '' }, response) => {
    asked.push(url)
    const [route = ''] = url.split('?')
    if (route === `${current}/audits/download`) response.end(Buffer.alloc(1_000_000, 'tar '))
    else if (Object.hasOwn(replies, route)) response.end(JSON.stringify(replies[route]))
    else response.writeHead(404).end('{"code":"NotFound","message":"there is nothing at this path"}')
  }
  const server = createServer(answer)
  await new Promise<void>((resolve) => void server.listen(path, resolve))
  return {
    asked,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
