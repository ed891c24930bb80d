import { createHash } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import type { Audit } from '../../../src/platform/audits/schemas.ts'
import { ask, beat, by, clusterWorld, create, report, shown, wanted } from '../../support/cluster-world.ts'
import { dayMs, minuteMs } from '../../support/turning-clock.ts'
import { waitFor } from '../../support/wait-for.ts'

const world = clusterWorld()

describe('a cluster is deleted', () => {
  it('by its host, and then forgotten', async () => {
    const host = await world.joined()
    const uid = await create(host, { name: 'to-be-gone' })
    const url = `/v1/spectroclusters/${uid}`
    expect((await ask('DELETE', url)).status).toBe(204)
    const { head, definition, headers, bytes } = await wanted(host)
    expect(definition).toBeUndefined()
    expect(head).toEqual({
      ...{ number: 2, isDeleted: true, tenantUid: head.tenantUid, cluster: { uid, name: 'to-be-gone' } },
    })
    const digest = createHash('sha256').update(bytes).digest('base64')
    expect(headers['repr-digest']).toBe(`sha-256=:${digest}:`)
    expect((await shown(uid)).status).toMatchObject({ state: 'Deleting', isDeletionRequested: true })
    const patched = await ask('PATCH', `${url}/variables`, [])
    expect([patched.status, patched.json?.code]).toEqual([409, 'ClusterDeleting'])
    // Once more changes nothing, and it is not applied again.
    expect((await ask('DELETE', url)).headers.etag).toBe('"2"')
    const applied = await ask('POST', `${url}/apply`)
    expect([applied.status, applied.json?.code]).toEqual([409, 'ClusterDeleting'])
    await report(host, uid, { number: 1, state: 'Deleted' })
    expect((await ask('GET', url)).status).toBe(200)
    expect((await report(host, uid, { number: 2, state: 'Deleted' })).status).toBe(204)
    expect((await ask('GET', url)).status).toBe(404)
    expect(await beat(host)).toBeUndefined()
    expect((await ask('GET', `/v1/edgehosts/${host.uid}`)).json).toMatchObject({ status: { state: 'ready' } })
    await create(host, { name: 'to-be-gone' })
  })

  it('is not forgotten where its host deleted it by itself', async () => {
    const host = await world.joined()
    const uid = await create(host)
    await report(host, uid, { number: 1, state: 'Deleted' })
    expect((await ask('GET', `/v1/spectroclusters/${uid}/status`)).json).toMatchObject({
      status: { state: 'Deleted' },
    })
  })

  it('without its host only when that has been silent for an hour', async () => {
    const host = await world.joined()
    const uid = await create(host)
    await beat(host)
    const url = `/v1/spectroclusters/${uid}?forceDelete=true`
    const refused = await ask('DELETE', url)
    expect([refused.status, refused.json?.code]).toEqual([409, 'HostNotSilent'])
    world.platform().clock.turn(61 * minuteMs)
    await world.signIn()
    expect((await ask('DELETE', url)).status).toBe(204)
    expect((await ask('GET', `/v1/spectroclusters/${uid}`)).status).toBe(404)
  })
})

it('on a full disk a heartbeat says how far its host is, and no more text than before', async () => {
  const host = await world.joined()
  const uid = await create(host)
  const step = { key: 'init', title: 'Set up', state: 'failed', failures: 1, reason: 'short' }
  await report(host, uid, { number: 1, state: 'Provisioning', message: 'short', steps: [step] })
  const full = vi.spyOn(world.platform().rooms.state.reserve, 'admits').mockReturnValue(false)
  try {
    const long = 'x'.repeat(4_000)
    const steps = [{ ...step, failures: 2, reason: long }]
    const { status } = await report(host, uid, { number: 1, state: 'Error', message: long, steps })
    expect(status).toBe(204)
    expect((await shown(uid)).status).toMatchObject({
      state: 'Error',
      number: 1,
      message: 'short',
      steps: [step],
    })
    await report(host, uid, { number: 1, state: 'Running', message: '', steps: [] })
    expect((await shown(uid)).status).toMatchObject({ state: 'Running', message: '', steps: [] })
  } finally {
    full.mockRestore()
  }
})

describe('a cluster whose host was heard last while the clock was ahead', () => {
  it('can be forgotten, and not only a year later', async () => {
    const { clock } = world.platform()
    const host = await world.joined()
    const uid = await create(host)
    clock.turn(365 * dayMs)
    expect((await host.logIn()).status).toBe(200)
    await beat(host)
    await waitFor(() => {
      expect(world.platform().rooms.hosts.find(host.uid)?.health?.at).toBeGreaterThan(Date.now() + dayMs)
    }, 5_000)
    clock.turn(-365 * dayMs)
    await world.signIn()
    expect((await ask('DELETE', `/v1/spectroclusters/${uid}?forceDelete=true`)).status).toBe(204)
  })
})

describe('what a host reports', () => {
  it('is shown, and found by filters', async () => {
    const host = await world.joined()
    const uid = await create(host, { name: 'reporting' })
    const step = { key: 'k', title: 'Install', state: 'done', failures: 0 }
    const body = { number: 1, state: 'Running', revision: 3, message: 'fine', steps: [step] }
    expect((await report(host, uid, body)).status).toBe(204)
    const condition = { type: 'Wanted', status: 'True', reason: 'Applied', message: 'as wanted' }
    const url = `/v1/spectroclusters/${uid}`
    expect((await ask('PATCH', `${url}/status/conditions`, [condition], by(host))).status).toBe(204)
    const packs = [
      {
        name: 'web',
        profileUid: world.profileUid(),
        version: '1.0.0',
        condition: { type: 'Ready', status: 'True' },
      },
    ]
    expect((await ask('PATCH', `${url}/packs/status`, { packs }, by(host))).status).toBe(204)
    expect((await ask('PATCH', `/v1/edgehosts/${host.uid}/packs/status`, { packs }, by(host))).status).toBe(
      204,
    )
    expect((await shown(uid)).status).toMatchObject({
      ...{ state: 'Running', number: 1, revision: 3, message: 'fine', agentVersion: '1.2.3' },
      ...{ packs, steps: [step] },
      conditions: [
        condition,
        {
          type: 'HostSilent',
          status: 'Unknown',
          reason: 'NotSeenYet',
        },
      ],
    })
    expect((await ask('GET', `/v1/edgehosts/${host.uid}`)).json).toMatchObject({ status: { packs } })
    const list = (filters: string) => ask('GET', `/v1/spectroclusters?filters=${encodeURIComponent(filters)}`)
    expect((await list('status.state=RunningANDmetadata.name=reporting')).json).toMatchObject({
      ...{ items: [{ metadata: { uid } }], listmeta: { count: 1 } },
    })
    expect((await list('metadata.labels.hall=4')).json).toMatchObject({ items: [] })
    // Nothing of it is in the trail.
    expect((await ask('GET', `/v1/audits?resourceUid=${uid}`)).json).toMatchObject({ listmeta: { count: 1 } })
  })

  it('is of a host in use, which a list of unused hosts leaves out', async () => {
    const [used, unused] = [await world.joined(), await world.joined()]
    await create(used)
    const uids = async (quickFilter: string) => {
      const { body } = await ask('GET', `/v1/edgehosts/metadata?quickFilter=${quickFilter}`)
      const { edgeHosts } = JSON.parse(body) as { edgeHosts: { uid: string }[] }
      return edgeHosts.map(({ uid }) => uid)
    }
    expect(await uids('')).toEqual(expect.arrayContaining([used.uid, unused.uid]))
    const listed = await uids('unusedEdgeHosts')
    expect([listed.includes(used.uid), listed.includes(unused.uid)]).toEqual([false, true])
    expect((await ask('GET', '/v1/edgehosts/metadata?quickFilter=others')).status).toBe(400)
  })

  it('is accepted from the host of the cluster alone', async () => {
    const [host, other] = [await world.joined(), await world.joined()]
    const uid = await create(host)
    expect((await report(other, uid, { state: 'Running' })).status).toBe(404)
    expect((await ask('PUT', `/v1/spectroclusters/${uid}/heartbeat`, { agentVersion: '1' })).status).toBe(403)
    expect((await ask('PATCH', `/v1/edgehosts/${other.uid}/packs/status`, {}, by(other))).status).toBe(404)
  })

  it('its kubeconfig is sealed, and each read by an administrator is in the trail', async () => {
    const host = await world.joined()
    const uid = await create(host)
    const url = `/v1/spectroclusters/${uid}/assets/kubeconfig`
    expect((await ask('GET', url)).status).toBe(404)
    const kubeconfig = 'apiVersion: v1\nusers: [{ token: a-token-of-kubernetes }]\n'
    expect((await report(host, uid, {})).headers['edgehost-kubeconfig']).toBe('?0')
    const sent = await ask('PUT', url, { kubeconfig }, by(host))
    expect((await report(host, uid, {})).headers['edgehost-kubeconfig']).toBeUndefined()
    expect([sent.status, typeof sent.headers.audituid]).toEqual([204, 'string'])
    const read = await ask('GET', url)
    expect([read.body, read.headers['cache-control'], typeof read.headers.audituid]).toEqual([
      ...[kubeconfig, 'no-store', 'string'],
    ])
    expect(read.headers['content-disposition']).toMatch(/^attachment; filename="[\w-]+\.kubeconfig"$/)
    expect((await ask('GET', url, undefined, world.viewer())).status).toBe(403)
    const row = world
      .platform()
      .rooms.state.database.sql.prepare('SELECT kubeconfig FROM cluster WHERE uid = ?')
      .get(uid)
    expect(Buffer.from(row?.kubeconfig as Uint8Array).includes('a-token')).toBe(false)
    const audits = await ask('GET', `/v1/audits?limit=50&resourceUid=${uid}`)
    expect(audits.body).not.toContain('a-token')
    const { items } = audits.json as unknown as { items: Audit[] }
    const put = items.find(({ spec }) => spec.actionType === 'update')
    expect(put?.spec.actor).toMatchObject({
      actorType: 'service',
      serviceName: expect.stringMatching(/./) as string,
    })
  })

  it.each([
    ['a condition', '[0].lastTransitionTime', 'PATCH', 'status/conditions'],
    ['a step', 'steps[0].endTimestamp', 'PUT', 'heartbeat'],
  ] as const)('is refused with a time of %s that cannot be', async (_, field, method, path) => {
    const host = await world.joined()
    const uid = await create(host)
    const time = '2026-02-30T08:00:00Z'
    const step = { key: 'k', title: 'Install', state: 'done', failures: 0, endTimestamp: time }
    const condition = { type: 'Ready', status: 'True', lastTransitionTime: time }
    const body = method === 'PUT' ? { agentVersion: '1', steps: [step] } : [condition]
    const refused = await ask(method, `/v1/spectroclusters/${uid}/${path}`, body, by(host))
    expect([refused.status, refused.json?.details]).toEqual([400, { field }])
  })
})
