import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newestAudit } from '../../support/audits.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/cluster/pods/shop/web-1/logs'

describe.each(['airgap', 'connected'] as const)('the last lines of a container, mode %s', (mode) => {
  let edge: TestEdge
  let admin: string
  beforeEach(async () => {
    edge = await createTestEdge({ mode })
    admin = (await edge.login('alice')).access
  })
  afterEach(() => edge.stop())
  const ask = async (url = path, token = admin) => {
    const reply = await edge.get(url, token)
    return { status: reply.statusCode, ...reply.json<ErrorReply>() }
  }

  it('are not found without a cluster', async () => {
    expect(await ask()).toMatchObject({ status: 404, code: 'NotFound' })
  })

  it('are refused for names that are none, and say so while no API server answers; each is in the audit trail', async () => {
    plantCluster(edge)
    expect(await ask('/v1/edge-mgmt/cluster/pods/Shop/web-1/logs')).toMatchObject({
      ...{ status: 400, code: 'BadRequest', details: { field: 'namespace' } },
    })
    expect(await ask(`${path}?previous=maybe`)).toMatchObject({ status: 400, code: 'BadRequest' })
    expect(await ask()).toMatchObject({ status: 503, code: 'NotReady' })
    expect((await newestAudit(edge, admin)).spec).toMatchObject({
      ...{ actionType: 'activity', resource: { kind: 'pod-logs' } },
      message: expect.stringContaining('NotReady'),
    })
  })

  it('are for administrators, and the refusal says so', async () => {
    plantCluster(edge)
    const viewer = (await edge.login('bob')).access
    expect(await ask(path, viewer)).toMatchObject({
      ...{ status: 403, code: 'Forbidden', message: expect.stringContaining('administrator') },
    })
    const head = await edge.app.inject({ method: 'HEAD', url: path, headers: { authorization: admin } })
    expect(head.statusCode).toBe(405)
  })
})
