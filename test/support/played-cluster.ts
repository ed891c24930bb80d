import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { ClusterCurrentApplications, PackInfo } from '../../src/cluster/packs/schemas.ts'
import type { ClusterDetails } from '../../src/cluster/schemas.ts'
import type { Event } from '../../src/cluster/events/schemas.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

/** Details of a cluster; `status` as given. */
export const detailsOf = (status: Partial<ClusterDetails['status']> = {}): ClusterDetails => ({
  metadata: {
    ...{ name: 'shop', id: '3f2c5e2e-93a4-4c43-8f0e-000000000001' },
    creationTimestamp: '2026-01-31T08:00:00.000Z',
  },
  spec: { hostIDs: [], nodePools: [], ntpServers: [], sshKeys: [], overlayCIDR: '', vip: '192.0.2.9' },
  status: {
    ...{
      agentVersion: '0.1.0',
      revision: 1,
      clusterState: 'Running',
      phase: 'Running',
      clusterStateReason: '',
    },
    ...{ clusterConditions: [], health: { status: 'Healthy' }, isRebootPending: false, k8sVersion: '1.34.4' },
    ...{ nodePools: [], services: [], ntpServersApplied: true, sshKeysApplied: true, steps: [] },
    troubles: [],
    ...status,
  },
})

/** Profiles with one pack. */
export const applicationsOf = (status: PackInfo['status'], message: string): ClusterCurrentApplications => ({
  clusterProfileTemplates: [
    {
      ...{ uid: 'p1', name: 'shop', type: 'add-on', version: '1.0.0', description: '', variables: [] },
      packs: [
        {
          ...{
            name: 'web',
            version: '2.1.0',
            layer: 'addon',
            type: 'spectro',
            values: '',
            logo: '',
            status,
            contents: [],
          },
          conditions: [{ type: 'Applied', status: 'False', reason: status, message }],
        },
      ],
    },
  ],
})

/** An event with this number. */
export const eventOf = (number: number, reason: string, message: string, step?: string): Event => ({
  metadata: {
    ...{ uid: `edgehostd-${number}`, name: `edgehostd-${number}`, number },
    creationTimestamp: new Date(Date.UTC(2026, 0, 31, 8, 0, number)).toISOString(),
  },
  involvedObject: { kind: 'Cluster', uid: 'c' },
  ...{ reason, message, severity: reason.endsWith('Failed') ? 'Warning' : 'Normal' },
  source: { component: 'edgehostd', host: 'edge-1' },
  ...(step !== undefined && { step }),
})

/** Begins the reply to a request for the stream. */
export const beginStream = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })

/** A part of a stream with these events. */
export const streamOf = (...events: readonly Event[]): string =>
  events.map((event) => `id: ${event.metadata.number}\ndata: ${JSON.stringify(event)}\n\n`).join('')

/** A daemon on a socket that answers by `<method> <path>`, without the query; other requests get 404. */
export async function playCluster(path: string, answers: Readonly<Record<string, Answer>>) {
  const asked: { url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const body = Buffer.concat(parts).toString()
      asked.push({ url: `${method} ${url}`, headers, body })
      const answer = answers[`${method} ${url.split('?')[0] ?? ''}`]
      if (url === '/v1/ping') response.end('{"msg":"pong"}')
      else if (answer) answer(request, response, body)
      else
        response
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"code":"NotFound","message":"this host has no cluster"}')
    })
  })
  await new Promise<void>((resolve) => void server.listen(path, resolve))
  return {
    asked,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Answers with JSON. */
export const json =
  (status: number, body: unknown): Answer =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
