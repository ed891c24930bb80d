import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createFetch } from '../../../src/uplink/fetch.ts'

it('a download from a platform that does not answer ends at once when the daemon stops, and so does its connection', async () => {
  let open = 0
  const server = createServer((socket) => {
    open += 1
    socket.on('error', () => undefined).on('close', () => (open -= 1))
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  // Longer than the test may take.
  const timeoutMs = 3_600_000
  const { fetch } = createFetch({ url: `https://127.0.0.1:${port}`, now: () => Date.now(), timeoutMs })
  const stop = new AbortController()
  const order = { path: '/v1/x', token: 'abc', headers: {} }
  const fetching = fetch(order, stop.signal, async () => undefined)
  await expect.poll(() => open).toBe(1)
  stop.abort(new Error('it stops'))
  await expect(fetching).rejects.toThrow('it stops')
  await expect.poll(() => open).toBe(0)
  // Nothing is asked any more.
  await expect(fetch(order, stop.signal, async () => undefined)).rejects.toThrow('it stops')
  expect(open).toBe(0)
})
