import { describe, expect, it } from 'vitest'
import {
  ask,
  by,
  clusterWorld,
  create,
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
