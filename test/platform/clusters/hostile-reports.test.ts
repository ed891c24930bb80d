import { describe, expect, it } from 'vitest'
import {
  ask,
  by,
  clusterWorld,
  create,
  download,
  problemCodes,
  report,
  shown,
  wanted,
} from '../../support/cluster-world.ts'
import { clusterProfile } from '../../support/platform-clusters.ts'

const world = clusterWorld()

describe('the number that a host reports', () => {
  it('is refused where it is far from that of the platform, and nothing depends on it', async () => {
    const host = await world.joined()
    const uid = await create(host)
    for (const field of ['number', 'seenNumber'])
      for (const number of [Number.MAX_SAFE_INTEGER, 2 ** 53, 999_999_999_999, 1_000_002, -1, 1.5]) {
        const refused = await report(host, uid, { [field]: number })
        expect([refused.status, refused.body], `${field} ${number}`).toEqual([
          400,
          expect.stringContaining(field),
        ])
      }
    expect((await ask('POST', `/v1/spectroclusters/${uid}/apply`)).headers.etag).toBe('"2"')
  })

  it('that it has only seen counts for what is applied again or deleted, after a restore', async () => {
    const host = await world.joined()
    const uid = await create(host)
    await report(host, uid, { number: 1, seenNumber: 40 })
    expect((await ask('POST', `/v1/spectroclusters/${uid}/apply`)).headers.etag).toBe('"41"')
    await report(host, uid, { number: 1, seenNumber: 60 })
    expect((await ask('DELETE', `/v1/spectroclusters/${uid}`)).status).toBe(204)
    expect((await wanted(host)).head).toMatchObject({ number: 61, isDeleted: true })
  })
})

describe('a value that was given for a sensitive variable', () => {
  const secret = 'given-to-a-sensitive-one'
  const profile = (name: string, version: string, isSensitive: boolean) => {
    const made = clusterProfile(name, version)
    return {
      ...made,
      spec: {
        ...made.spec,
        variables: made.spec.variables.map((variable) =>
          (variable as { name: string }).name === 'PASSWORD' ? { ...variable, isSensitive } : variable,
        ),
      },
    }
  }
  const seen = async (uid: string) =>
    (await ask('GET', `/v1/spectroclusters/${uid}/variables`, undefined, world.viewer())).body

  it('is not shown by a version that declares it as not sensitive; it has to be given again', async () => {
    const host = await world.joined()
    const first = await world.imported(profile('exposed', '1.0.0', true))
    const second = await world.imported(profile('exposed', '1.0.1', false))
    const uid = await create(host, { variables: [{ name: 'PASSWORD', value: secret }] }, first)
    const put = (variables: readonly object[]) =>
      ask('PUT', `/v1/spectroclusters/${uid}/profiles`, {
        profiles: [{ uid: first, replaceWithProfile: second, variables }],
      })
    const refused = await put([])
    expect([refused.status, problemCodes(refused)]).toEqual([400, ['VariableInvalid']])
    expect(refused.body).toContain('give the value again')
    expect(refused.body + (await seen(uid))).not.toContain(secret)
    expect((await put([{ name: 'PASSWORD', value: 'anyone-may-read' }])).status).toBe(204)
    expect(await seen(uid)).toContain('anyone-may-read')
    expect(await seen(uid)).not.toContain(secret)
  })

  it('nor by a draft that is changed so', async () => {
    const host = await world.joined()
    const draft = await world.imported(profile('draft', '1.0.0', true))
    const uid = await create(host, { variables: [{ name: 'PASSWORD', value: secret }] }, draft)
    const { variables } = profile('draft', '1.0.0', false).spec
    const changed = await ask('PUT', `/v1/clusterprofiles/${draft}/variables`, { variables })
    expect(changed.status, changed.body).toBe(204)
    const refused = await ask('POST', `/v1/spectroclusters/${uid}/apply`)
    expect([refused.status, problemCodes(refused)]).toEqual([400, ['VariableInvalid']])
    expect(await seen(uid)).not.toContain(secret)
    expect((await shown(uid)).spec.number).toBe(1)
  })
})

describe('a platform whose disk is full', () => {
  it('lets users sign in, and says to hosts that nothing can be written', async () => {
    const host = await world.joined()
    const uid = await create(host)
    const { sql } = world.platform().rooms.state.database
    sql.exec('PRAGMA query_only = 1')
    try {
      await world.signIn()
      expect((await ask('GET', '/v1/spectroclusters')).status).toBe(200)
      const reply = await ask(
        'PUT',
        `/v1/spectroclusters/${uid}/heartbeat`,
        { agentVersion: '1', state: 'Running' },
        by(host),
      )
      expect([reply.status, reply.json?.code]).toEqual([507, 'InsufficientStorage'])
    } finally {
      sql.exec('PRAGMA query_only = 0')
    }
  })
})

describe('a host with a cluster that is in wrong hands', () => {
  it('is removed at once with what the platform knows of its cluster, and refused from then on', async () => {
    const host = await world.joined()
    const uid = await create(host)
    await report(host, uid, { state: 'Running', number: 1, seenNumber: 1 })
    const url = `/v1/edgehosts/${host.uid}`
    expect((await ask('DELETE', `/v1/spectroclusters/${uid}?forceDelete=true`)).status).toBe(409)
    expect((await ask('DELETE', url)).status).toBe(409)
    expect((await ask('DELETE', `${url}?forcedelete=true`)).status).toBe(400)
    expect((await ask('DELETE', `${url}?forceDelete=true`, undefined, world.viewer())).status).toBe(403)

    expect((await ask('DELETE', `${url}?forceDelete=true`)).status).toBe(204)
    expect((await ask('GET', `/v1/spectroclusters/${uid}`)).status).toBe(404)
    expect((await download(host)).status).toBe(401)
    expect((await report(host, uid, { state: 'Running', number: 1 })).status).toBe(401)
    expect((await host.logIn()).json).toMatchObject({ code: 'HostRemoved' })
    const trail = await ask('GET', `/v1/audits?resourceUid=${host.uid}&actionType=delete`)
    expect(trail.body).toContain('cluster')
  })

  it('that is read is written back as it was', async () => {
    const host = await world.joined()
    const uid = await create(host)
    const { metadata, status } = JSON.parse((await ask('GET', `/v1/edgehosts/${host.uid}`)).body) as {
      metadata: object
      status: object
    }
    expect(status).toMatchObject({ packs: [], inUseClusters: [{ uid }] })
    const { status: code, body } = await ask('PUT', `/v1/edgehosts/${host.uid}/meta`, { metadata, status })
    expect([code, body]).toEqual([204, ''])
  })
})

it('a deletion that its host begins while it is taken back is not taken back', async () => {
  const host = await world.joined()
  const uid = await create(host)
  expect((await ask('DELETE', `/v1/spectroclusters/${uid}`)).status).toBe(204)
  const cancelled = ask('POST', `/v1/spectroclusters/${uid}/apply?cancelDeletion=true`)
  expect((await report(host, uid, { state: 'Deleting', number: 1, seenNumber: 2 })).status).toBe(204)
  const { status, body } = await cancelled
  expect([status, body]).toEqual([409, expect.stringContaining('ClusterDeleting')])
  expect((await shown(uid)).status.state).toBe('Deleting')
})
