import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { expect, it, onTestFinished } from 'vitest'
import type { StateMessage } from '../../../src/api/schemas.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const waiting = { timeout: 30_000, interval: 20 }

it('the stream of a whole daemon has a state of each room, and each again when it changes, at rest nothing', async () => {
  const edge = await createTestEdge()
  onTestFinished(() => edge.stop())
  const { port } = await edge.daemon.rooms.api.listen(0)
  const { access } = await edge.login('bob')
  const request = get({
    ...{ host: '127.0.0.1', port, rejectUnauthorized: false, agent: false },
    path: '/v1/edge-mgmt/events/stream?states=true',
    headers: { authorization: access },
  })
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  onTestFinished(() => void request.destroy())
  let text = ''
  reply.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  reply.on('error', () => undefined)
  const messages = () =>
    [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, type = '', data = '']) => ({
      type,
      ...(JSON.parse(data) as StateMessage),
    }))
  const types = () => messages().map(({ type }) => type)
  const all = ['cluster', 'content', 'host', 'link', 'network', 'platform', 'step', 'upload']
  await waitFor(() => expect(types().sort()).toEqual(all), waiting)
  expect(messages().find(({ type }) => type === 'cluster')?.state).toBeNull()
  expect(messages().find(({ type }) => type === 'platform')?.state).toMatchObject({ mode: 'airgap' })
  // Each path is a read that this user may make.
  for (const path of new Set(messages().flatMap(({ paths }) => paths)))
    expect([200, 404], path).toContain((await edge.get(path, access)).statusCode)
  // Two comments at rest, and nothing else.
  const before = text.length
  await waitFor(() => expect(text.slice(before)).toBe(':\n\n:\n\n'), waiting)
  plantCluster(edge)
  await waitFor(() => expect(types().slice(8).sort()).toEqual(['cluster', 'step']), waiting)
  expect(messages().findLast(({ type }) => type === 'cluster')?.state).toMatchObject({
    ...{ name: expect.any(String) as string, revision: 1, troubles: 0 },
  })
}, 60_000)
