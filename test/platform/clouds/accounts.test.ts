import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createCloudWorld,
  machinesOf,
  right,
  rightSecret,
  type CloudWorld,
} from '../../support/platform-clouds.ts'

const path = '/v1/cloudaccounts/vendor'
const configs = '/v1/cloudconfigs/vendorke'
let world: CloudWorld
beforeAll(async () => {
  world = await createCloudWorld()
})
beforeEach(() => {
  world.cloud.misbehaves = undefined
})
afterAll(() => world.close())

interface Listed {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly uid: string } }[]
  readonly listmeta: { readonly count: number; readonly continue: string }
}
const entity = (name: string, spec: object = right, more: object = {}) => ({
  metadata: { name, ...more },
  spec,
})
const listed = async (query: string, more?: Record<string, string>) =>
  (await world.ask<Listed>('GET', `${path}${query}`, undefined, more)).body
const namesOf = ({ items }: Listed) => items.map(({ metadata }) => metadata.name)

describe('a cloud account', () => {
  it('is kept once the cloud accepts it, and no reply has its secret', async () => {
    const labels = { plant: 'north' }
    const uid = await world.make(path, entity('north', right, { labels, annotations: { note: 'a' } }))
    const { code, body } = await world.ask('GET', `${path}/${uid}`)
    expect(code).toBe('200')
    expect(body).toEqual({
      ...{ apiVersion: 'v1', kind: 'VendorAccount', status: {} },
      metadata: {
        ...{ name: 'north', uid, labels, annotations: { note: 'a' } },
        creationTimestamp: expect.any(String) as string,
        lastModifiedTimestamp: expect.any(String) as string,
      },
      spec: { secretId: right.secretId, secretKey: '********' },
    })
    expect(JSON.stringify(await listed(''))).not.toContain(rightSecret)
    const audits = await world.ask<{ items: object[] }>('GET', '/v1/audits?limit=1')
    expect(JSON.stringify(audits.body.items[0])).toContain(uid)
  })

  it('is not kept where the cloud refuses it or does not answer', async () => {
    const wrong = await world.ask('POST', path, entity('wrong', { ...right, secretKey: 'wrong' }))
    expect(wrong.code).toBe('400 CloudCredentialsRefused')
    world.cloud.misbehaves = (_, reply) => reply.writeHead(500).end()
    expect((await world.ask('POST', path, entity('wrong'))).code).toBe('503 CloudUnavailable')
    expect(namesOf(await listed(''))).not.toContain('wrong')
  })

  it('has a name of its own in its scope; the cloud is not asked about one that is taken', async () => {
    await world.make(path, entity('once'))
    world.cloud.requests.length = 0
    const { code, message } = await world.ask('POST', path, entity('once'))
    expect([code, message]).toEqual([
      '409 CloudAccountExists',
      'there is a cloud account named once in this scope',
    ])
    const cased = await world.ask('POST', path, entity('Once'))
    expect([cased.code, cased.message]).toEqual([
      '409 CloudAccountExists',
      'there is a cloud account named once in this scope, and Once differs from it in case only; take another name',
    ])
    expect(world.cloud.requests).toEqual([])
    const project = { projectuid: await world.make('/v1/projects', { metadata: { name: 'names' } }) }
    await world.make(path, entity('once'), project)
    // Two at the same time.
    const both = await Promise.all([1, 2].map(() => world.ask('POST', path, entity('race'))))
    expect(both.map(({ code: each }) => each).sort()).toEqual(['201', '409 CloudAccountExists'])
  })

  it.each([
    [{ spec: right }, 'metadata'],
    [entity(' a'), 'metadata.name'],
    [{ metadata: { name: 'a' } }, 'spec'],
    [entity('a', { secretId: 'a' }), 'spec.secretKey'],
    [entity('a', right, { labels: { a: 'b c' } }), 'metadata.labels'],
  ])('is refused with a field that is wrong: %j', async (payload, field) => {
    const { code, message } = await world.ask('POST', path, payload)
    expect([code, message]).toEqual(['400 BadRequest', expect.stringContaining(field)])
  })

  it('is listed as everything is: by scope, pages, filters, orders and fields', async () => {
    const project = { projectuid: await world.make('/v1/projects', { metadata: { name: 'lists' } }) }
    for (const name of ['c', 'a', 'b'])
      await world.make(path, entity(name, right, { labels: { first: name } }), project)
    expect(namesOf(await listed('', project))).toEqual(['b', 'a', 'c'])
    expect(namesOf(await listed('?orderBy=metadata.name=1', project))).toEqual(['a', 'b', 'c'])
    expect(namesOf(await listed('?filters=metadata.labels.first=a', project))).toEqual(['a'])
    expect((await listed('?fields=metadata.name', project)).items).toEqual(
      ['b', 'a', 'c'].map((name) => ({ metadata: { name } })),
    )
    const first = await listed('?limit=2', project)
    const second = await listed(`?limit=2&continue=${encodeURIComponent(first.listmeta.continue)}`, project)
    expect([namesOf(first), namesOf(second), first.listmeta.count]).toEqual([['b', 'a'], ['c'], 3])
    expect((await world.ask('GET', `${path}?filters=spec.secretKey=a`)).code).toBe('400 BadRequest')
  })

  it('is deleted where no cloud configuration uses it, and only in its scope', async () => {
    const uid = await world.make(path, entity('used'))
    const config = await world.configure({ workers: ['worker'] }, uid)
    const used = await world.ask('DELETE', `${path}/${uid}`)
    expect([used.code, used.message]).toEqual([
      '409 CloudAccountInUse',
      expect.stringMatching(/^used is used by the cloud configuration config \d+; delete them first$/),
    ])
    const project = { projectuid: await world.make('/v1/projects', { metadata: { name: 'other' } }) }
    for (const method of ['GET', 'DELETE'] as const)
      expect((await world.ask(method, `${path}/${uid}`, undefined, project)).code).toBe('404 NotFound')
    expect((await world.ask('DELETE', `${configs}/${config}`)).code).toBe('204')
    expect((await world.ask('DELETE', `${path}/${uid}`)).code).toBe('204')
    expect((await world.ask('GET', `${path}/${uid}`)).code).toBe('404 NotFound')
  })
})

describe('a cloud configuration', () => {
  it('names pools of an account of its scope or of the tenant', async () => {
    const project = { projectuid: await world.make('/v1/projects', { metadata: { name: 'configs' } }) }
    const account = await world.make(path, entity('of the tenant'))
    const machinePoolConfig = [
      { name: 'masters', tags: ['plant', 'role=master'] },
      { name: 'workers', tags: ['plant'] },
    ]
    const spec = { cloudAccountRef: { uid: account }, machinePoolConfig }
    const uid = await world.make(configs, entity('plant', spec), project)
    const { body } = await world.ask('GET', `${configs}/${uid}`, undefined, project)
    expect(body).toMatchObject({
      ...{ apiVersion: 'v1', kind: 'VendorCloudConfig', metadata: { name: 'plant', uid } },
      spec: {
        cloudAccountRef: { kind: 'VendorAccount', name: 'of the tenant', uid: account },
        machinePoolConfig,
      },
    })
    const lists = await world.ask<Listed>('GET', configs, undefined, project)
    expect(lists.body.items).toEqual([body])
    expect((await world.ask('GET', `${configs}/${uid}`)).code).toBe('404 NotFound')
    expect((await world.ask('POST', configs, entity('plant', spec), project)).code).toBe(
      '409 CloudConfigExists',
    )
    const deletion = await world.ask('DELETE', `/v1/projects/${project.projectuid}`)
    expect([deletion.code, deletion.message]).toEqual([
      '409 ProjectInUse',
      'configs still has 1 cloud configuration; delete them first',
    ])
    // An account of a project is none of another one's.
    const own = await world.make(path, entity('own'), project)
    const other = await world.ask('POST', configs, entity('b', { ...spec, cloudAccountRef: { uid: own } }))
    expect([other.code, other.message]).toEqual([
      '400 BadRequest',
      'spec.cloudAccountRef.uid is no cloud account of this scope or of the tenant',
    ])
  })

  const pool = { name: 'a', tags: ['b'] }
  it.each([
    [[], 'spec.machinePoolConfig'],
    [[pool, { ...pool, tags: ['c'] }], 'spec.machinePoolConfig[1].name is the name of another pool too'],
    [[{ ...pool, tags: [] }], 'spec.machinePoolConfig[0].tags'],
    [[{ ...pool, tags: ['b', 'b'] }], 'spec.machinePoolConfig[0].tags'],
    [[{ ...pool, tags: ['a,b'] }], 'spec.machinePoolConfig[0].tags[0]'],
    [[{ ...pool, tags: ['a/b'] }], 'spec.machinePoolConfig[0].tags[0]'],
    [[{ ...pool, tags: ['a'.repeat(61)] }], 'spec.machinePoolConfig[0].tags[0]'],
    [[{ tags: ['a'] }], 'spec.machinePoolConfig[0].name'],
  ])('is refused with pools such as %j', async (machinePoolConfig, field) => {
    const spec = { cloudAccountRef: { uid: '00000000-0000-7000-8000-000000000000' }, machinePoolConfig }
    const { code, message } = await world.ask('POST', configs, entity('refused', spec))
    expect([code, message]).toEqual(['400 BadRequest', expect.stringContaining(field)])
  })

  it('its machines are those of a pool that it has', async () => {
    const config = await world.configure({ workers: ['worker'] })
    const { code, message } = await world.ask('GET', machinesOf(config, 'masters'))
    expect([code, message]).toEqual([
      '404 NotFound',
      'the cloud configuration has no machine pool with this name; it has workers',
    ])
  })
})
