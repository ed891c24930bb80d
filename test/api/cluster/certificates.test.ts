import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newestAudit } from '../../support/audits.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/cluster'

describe.each(['airgap', 'connected'] as const)('the certificates of a cluster, mode %s', (mode) => {
  let edge: TestEdge
  let admin: string
  beforeEach(async () => {
    edge = await createTestEdge({ mode })
    admin = (await edge.login('alice')).access
  })
  afterEach(() => edge.stop())
  const post = async (headers: Record<string, string> = { authorization: admin }, query = '') => {
    const url = `${path}/renew-certificates${query}`
    const reply = await edge.app.inject({ method: 'POST', url, headers })
    return { status: reply.statusCode, code: reply.json<ErrorReply>().code }
  }

  it('are not found without a cluster', async () => {
    expect((await edge.get(`${path}/certificates`, admin)).statusCode).toBe(404)
    expect(await post()).toEqual({ status: 404, code: 'NotFound' })
  })

  it('are an empty list until the control plane is set up, and there is nothing to renew', async () => {
    plantCluster(edge)
    const reply = await edge.get(`${path}/certificates`, admin)
    expect([reply.statusCode, reply.json()]).toEqual([
      200,
      { needsRenewal: false, certificates: [], problems: [] },
    ])
    expect(await post()).toEqual({ status: 409, code: 'NoCertificates' })
    expect((await newestAudit(edge, admin)).spec).toMatchObject({
      ...{ actionType: 'action', resource: { kind: 'cluster' } },
      message: expect.stringContaining('NoCertificates'),
    })
  })

  it('have no dry run: what asks for one is refused', async () => {
    plantCluster(edge)
    expect(await post({ authorization: admin }, '?dryRun=true')).toEqual({ status: 400, code: 'BadRequest' })
  })

  it('are not renewed without a session', async () => {
    plantCluster(edge)
    expect((await post({})).status).toBe(401)
  })
})
