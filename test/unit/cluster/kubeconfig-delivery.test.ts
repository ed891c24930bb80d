import type { FastifyInstance } from 'fastify'
import { beforeEach, expect, it } from 'vitest'
import type { AuditedRequest } from '../../../src/api/audit-hook.ts'
import { identifyByToken } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import type { Role } from '../../../src/base/role.ts'
import type { ClusterRecord } from '../../../src/cluster/cluster-store.ts'
import type { Creation } from '../../../src/cluster/desired/creation.ts'
import { createReading } from '../../../src/cluster/api/reading.ts'
import { clusterRoutes } from '../../../src/cluster/api/routes.ts'
import type { ClusterDetails } from '../../../src/cluster/schemas.ts'
import { pending } from '../../../src/cluster/loop/status.ts'
import { captureLog } from '../../support/https-server.ts'
import { detailsOf } from '../../support/played-cluster.ts'
import { createTurningClock, type TurningClock } from '../../support/turning-clock.ts'

const path = '/v1/edge-mgmt/cluster/details'
const hourMs = 3_600_000

let clock: TurningClock
let audited: AuditedRequest[]
let uid: string
let download: (token: string) => Promise<Awaited<ReturnType<FastifyInstance['inject']>>>
let ask: (token: string, query?: string) => Promise<{ kubeconfig: unknown; hasRecord: boolean }>

/** The routes of a cluster with a kubeconfig; a token is `<role> <session>`, and `admin` alone is root on the local socket. */
beforeEach(async () => {
  clock = createTurningClock(0)
  audited = []
  uid = 'c1'
  const { log } = captureLog()
  const { app } = createServer({
    ...{ log, bodyLimitBytes: 1_000, mode: 'airgap' },
    onAuthenticated: () => undefined,
    identify: identifyByToken((token) => {
      const [role, sessionUid] = token.split(' ')
      return { userName: 'anna', role: role as Role, sessionUid }
    }),
    audit: {
      admit: () => true,
      begin: () => '',
      async end(request) {
        audited.push(request)
        return `record-${audited.length}`
      },
    },
  })
  const reading = createReading({
    store: { current: () => ({ uid, name: 'shop', status: pending }) as ClusterRecord } as never,
    revisions: {} as never,
    status: () => undefined,
    details: {
      details: async (_record, _standing, kubeconfig) =>
        detailsOf(kubeconfig === undefined ? {} : { kubeconfig }),
      state: () => detailsOf().status,
      nodes: async () => ({ nodes: [] }),
      steps: () => [],
    },
    kubeconfig: async () => 'apiVersion: v1',
    ...{ hostId: 'edge-1', clock },
  })
  await app.register(clusterRoutes, { reading, creation: {} as Creation, remove: () => ({ uid, name: '' }) })
  download = (token) =>
    app.inject({ url: '/v1/edge-mgmt/cluster/kubeconfig', headers: { authorization: token } })
  ask = async (token, query = '') => {
    const reply = await app.inject({ url: path + query, headers: { authorization: token } })
    expect(reply.statusCode, reply.body).toBe(200)
    const { kubeconfig } = reply.json<ClusterDetails>().status
    return { kubeconfig, hasRecord: reply.headers.audituid !== undefined }
  }
})

it('the first delivery of a kubeconfig in a session of an administrator is audited, and no later one', async () => {
  for (const session of ['s1', 's2']) {
    expect(await ask(`admin ${session}`)).toEqual({ kubeconfig: 'apiVersion: v1', hasRecord: true })
    for (const query of ['', '?kubeconfig=true'])
      expect(await ask(`admin ${session}`, query)).toEqual({ kubeconfig: 'apiVersion: v1', hasRecord: false })
  }
  expect(audited).toHaveLength(2)
  expect(audited[0]).toMatchObject({
    ...{ actor: 'anna', role: 'admin', kind: 'kubeconfig', resourceName: 'shop' },
    message: expect.stringContaining('with the kubeconfig') as string,
  })
})

it('details without the kubeconfig are no delivery: the next one is the first', async () => {
  for (let times = 0; times < 3; times += 1)
    expect(await ask('admin s1', '?kubeconfig=false')).toEqual({ kubeconfig: undefined, hasRecord: false })
  expect(audited).toEqual([])
  expect(await ask('admin s1')).toMatchObject({ hasRecord: true })
})

it('a kubeconfig is never delivered to a viewer', async () => {
  for (const query of ['', '?kubeconfig=true', '?kubeconfig=false'])
    expect(await ask('viewer s1', query)).toEqual({ kubeconfig: undefined, hasRecord: false })
  expect(audited).toEqual([])
})

it('the kubeconfig of another cluster is another delivery; those to root on the local socket count once an hour', async () => {
  expect(await ask('admin s1')).toMatchObject({ hasRecord: true })
  uid = 'c2'
  expect(await ask('admin s1')).toMatchObject({ hasRecord: true })
  expect(await ask('admin')).toMatchObject({ hasRecord: true })
  expect(await ask('admin')).toMatchObject({ hasRecord: false })
  clock.turn(hourMs)
  expect(await ask('admin')).toMatchObject({ hasRecord: true })
})

it('the kubeconfig as a file is for administrators, and each read is audited', async () => {
  for (const count of [1, 2]) {
    const reply = await download('admin s1')
    expect([reply.statusCode, reply.body]).toEqual([200, 'apiVersion: v1'])
    expect(reply.headers).toMatchObject({
      'content-type': 'application/yaml',
      'content-disposition': 'attachment; filename="shop.kubeconfig"',
    })
    expect(audited).toHaveLength(count)
    expect(audited.at(-1)).toMatchObject({ kind: 'kubeconfig', resourceName: 'shop', resourceUid: uid })
  }
  expect((await download('viewer s2')).statusCode).toBe(403)
})
