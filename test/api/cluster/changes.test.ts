import { describe, expect, it } from 'vitest'
import type { ClusterRevisions } from '../../../src/cluster/desired/schemas.ts'
import type { ClusterConfiguration } from '../../../src/cluster/schemas.ts'
import { newestAudit } from '../../support/audits.ts'
import { plantCluster, postedCluster } from '../../support/planted-cluster.ts'
import { publicKeys } from '../../support/ssh-keys.ts'
import {
  createTestEdge,
  useEdges,
  useOneEdge,
  type ErrorReply,
  type TestEdge,
} from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/cluster'
const merge = 'application/merge-patch+json'
const patch = 'application/json-patch+json'

let edge: TestEdge
let admin: string
const use = async (made: TestEdge) => {
  edge = made
  plantCluster(edge)
  admin = (await edge.login('alice')).access
}

const ask = async (
  method: 'PUT' | 'PATCH' | 'POST',
  url: string,
  payload?: unknown,
  headers: Record<string, string> = {},
) => {
  const reply = await edge.app.inject({
    ...{ method, url: path + url },
    headers: { authorization: admin, 'content-type': 'application/json', ...headers },
    ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }),
  })
  return { status: reply.statusCode, etag: reply.headers.etag, body: reply.body, reply }
}
const refusal = ({ body }: { body: string }) => {
  const { code, details } = JSON.parse(body) as ErrorReply
  return [code, details?.field]
}

describe('the configuration of a cluster', () => {
  useOneEdge(use)

  it('GET gives it with an ETag, and 304 to a client that has it', async () => {
    const reply = await edge.get(path, admin)
    const { etag = '' } = reply.headers as { etag?: string }
    expect(etag).toMatch(/^"[0-9a-f]{32}"$/)
    const headers = { authorization: admin, 'if-none-match': etag }
    expect((await edge.app.inject({ url: path, headers })).statusCode).toBe(304)
  })

  it('what GET gave, sent back as a whole, is accepted with the same ETag and changes nothing', async () => {
    const got = await edge.get(path, admin)
    const { etag = '' } = got.headers as { etag?: string }
    const body = got.json<ClusterConfiguration>()
    for (const url of ['', '/edge-1'])
      expect(await ask('PUT', url, body, { 'if-match': etag })).toMatchObject({ status: 204, etag })
    expect((await newestAudit(edge, admin)).spec).toMatchObject({
      ...{ actionType: 'update', outcome: 'success', resource: { kind: 'cluster', name: 'edge-1' } },
      message: expect.stringContaining('nothing differs'),
    })
    expect((await edge.get(`${path}/revisions`, admin)).json<ClusterRevisions>().items).toEqual([
      expect.objectContaining({ revision: 1, by: 'alice', origin: 'create', isActive: true }),
    ])
  })

  it('GET gives back the id of this host in the spelling in which it was posted', async () => {
    const other = await createTestEdge()
    try {
      const machinePoolConfig = [{ name: 'control-plane-pool', hosts: [{ hostID: 'edge-test' }] }]
      const spec = { ...postedCluster.spec, cloudConfig: { spec: { machinePoolConfig } } }
      plantCluster(other, [], { ...postedCluster, spec })
      const got = await other.get(path, (await other.login('alice')).access)
      expect(got.json<ClusterConfiguration>().spec?.cloudConfig).toEqual({ spec: { machinePoolConfig } })
    } finally {
      await other.stop()
    }
  })

  it('a stored value of a field that is refused by now comes back with each write; another one is refused', async () => {
    const other = await createTestEdge()
    try {
      const pool = { hosts: [{ caCert: 'an authority' }], osType: 'windows', skipK8sUpgrade: 'enabled' }
      const withPool = (more: object) => ({
        ...postedCluster,
        spec: { ...postedCluster.spec, cloudConfig: { spec: { machinePoolConfig: [{ ...pool, ...more }] } } },
      })
      plantCluster(other, [], withPool({}))
      const headers = { authorization: (await other.login('alice')).access }
      const send = async (method: 'PUT' | 'PATCH', payload: object) => {
        const reply = await other.app.inject({ method, url: path, headers, payload })
        return [reply.statusCode, reply.body === '' ? '' : reply.json<ErrorReply>().details?.field]
      }
      expect(await send('PUT', withPool({}))).toEqual([204, ''])
      expect(await send('PATCH', { spec: withPool({}).spec })).toEqual([204, ''])
      const field = 'spec.cloudConfig.spec.machinePoolConfig[0]'
      expect(await send('PUT', withPool({ osType: 'plan9' }))).toEqual([400, `${field}.osType`])
      expect(await send('PATCH', { spec: withPool({ maxSize: 3 }).spec })).toEqual([400, `${field}.maxSize`])
    } finally {
      await other.stop()
    }
  })

  it('each media type is a patch of its own kind', async () => {
    const name = { metadata: { name: 'other' } }
    const operations = [{ op: 'replace', path: '/metadata/name', value: 'other' }]
    const all = [
      ['', name, 'application/json'],
      ['', name, merge],
      ['', operations, patch],
      ['/edge-1', { clusterConfigPatches: operations }, 'application/json; charset=utf-8'],
      ['/edge-1', name, merge],
      ['/edge-1', operations, patch],
    ] as const
    for (const [url, body, type] of all)
      expect(refusal(await ask('PATCH', url, body, { 'content-type': type })), `${url} ${type}`).toEqual([
        'CannotChange',
        'metadata.name',
      ])
  })

  it('a test of a JSON patch that holds changes nothing, and one that does not refuses the write', async () => {
    const test = (value: string) =>
      ask('PATCH', '', [{ op: 'test', path: '/spec/profileVariables/0/value', value }], {
        'content-type': patch,
      })
    expect((await test('2')).status).toBe(204)
    expect(refusal(await test('3'))).toEqual(['BadRequest', '[0]'])
  })

  it('a patch of the other path is refused, since it would change nothing', async () => {
    const operations = [{ op: 'remove', path: '/spec/profileVariables' }]
    const list = await ask('PATCH', '', { clusterConfigPatches: operations })
    const part = await ask('PATCH', '/edge-1', { spec: { profileVariables: [] } })
    for (const reply of [list, part]) expect(refusal(reply)).toEqual(['BadRequest', 'clusterConfigPatches'])
    expect(list.body).toContain('PATCH /v1/edge-mgmt/cluster/{clusterName}')
    expect(part.body).toContain(merge)
    expect((await ask('PATCH', '/edge-1', {})).status).toBe(204)
  })

  it('one value that is sent again in a part of the configuration keeps the others, in a merge patch it does not', async () => {
    const part = { spec: { profileVariables: [{ name: 'replicas', value: '2' }] } }
    expect((await ask('PATCH', '', part)).status).toBe(204)
    expect((await edge.get(`${path}/revisions`, admin)).json<ClusterRevisions>().items).toHaveLength(1)
    // Another configuration needs the definition, which the planted cluster does not have.
    const { status, body } = await ask('PATCH', '?dryRun=true', part, { 'content-type': merge })
    expect([status, (JSON.parse(body) as ErrorReply).details]).toEqual([400, { field: 'archiveUploadPath' }])
  })

  it('null takes a member away, and an entry of a list need not have all of its members', async () => {
    // Another configuration needs the definition, which the planted cluster does not have: that is the last thing that is judged.
    const parts = [
      { metadata: { labels: { site: null } } },
      { metadata: { labels: null } },
      { spec: { profileVariables: null } },
      { spec: { profileVariables: [{ name: 'replicas', value: null }] } },
      {
        spec: { cloudConfig: { spec: { machinePoolConfig: [{ name: 'control-plane-pool', size: null }] } } },
      },
      { spec: { cloudConfig: { spec: { clusterConfig: null } } } },
    ]
    for (const part of parts)
      expect(refusal(await ask('PATCH', '?dryRun=true', part)), JSON.stringify(part)).toEqual([
        ...['BadRequest', 'archiveUploadPath'],
      ])
    // What is not there is taken away without a change, as a time that is not set.
    expect((await ask('PATCH', '', { spec: { scheduleAt: null } })).status).toBe(204)
    expect((await ask('PATCH', '', null)).status).toBe(400)
  })

  it('a field that a patch brings and that is misspelt is refused with its path, since nothing would be changed', async () => {
    const variables = { profileVariabels: [{ name: 'replicas', value: '9' }] }
    const operations = [{ op: 'add', path: '/spec/profileVariabels', value: [] }]
    const all = [
      ['', { spec: variables }, 'application/json', 'spec.profileVariabels'],
      ['', { spec: variables }, merge, 'spec.profileVariabels'],
      ['', operations, patch, 'spec.profileVariabels'],
      ['', { spce: {} }, 'application/json', 'spce'],
      ['/edge-1', { clusterConfigPatches: operations }, 'application/json', 'spec.profileVariabels'],
      [
        ...(['', { spec: { profileVariables: [{ name: 'replicas', vlaue: '9' }] } }] as const),
        ...(['application/json', 'spec.profileVariables[0].vlaue'] as const),
      ],
    ] as const
    for (const [url, body, type, field] of all)
      expect(refusal(await ask('PATCH', url, body, { 'content-type': type })), `${url} ${type}`).toEqual([
        'BadRequest',
        field,
      ])
  })

  it('what a patch makes has to be a configuration', async () => {
    const wrong = { spec: { profileVariables: 5 } }
    expect(refusal(await ask('PATCH', '', wrong, { 'content-type': merge }))).toEqual([
      'BadRequest',
      'spec.profileVariables',
    ])
    const operations = [{ op: 'remove', path: '/spec/profileVariables/0/nothing' }]
    expect(refusal(await ask('PATCH', '/edge-1', { clusterConfigPatches: operations }))).toEqual([
      'BadRequest',
      'clusterConfigPatches[0].path',
    ])
  })

  it('a whole configuration is no merge patch, and other media types are refused', async () => {
    expect((await ask('PUT', '', {}, { 'content-type': merge })).status).toBe(415)
    expect((await ask('PATCH', '', {}, { 'content-type': 'text/plain' })).status).toBe(415)
  })

  it.each([
    ['POST', ''],
    ['PUT', ''],
    ['PUT', '/edge-1'],
    ['PATCH', ''],
    ['PATCH', '/edge-1'],
    ['PUT', '/profiles'],
    ['PUT', '/settings'],
    ['POST', '/rollback'],
  ] as const)(
    'a query name that is not known is refused by %s %s, as it may be a dry run that was meant',
    async (method, url) => {
      const unknown = 'is not known; only dryRun may be given'
      for (const [query, field, reason] of [
        ['dryrun=true', 'dryrun', 'is misspelt; write dryRun'],
        ['dryRun=true&dry-run=true', 'dry-run', 'is misspelt; write dryRun'],
        ['dryRun=true&wait%0Ax=1', 'wait\\u000ax', unknown],
      ] as const) {
        const { status, body } = await ask(method, `${url}?${query}`, {})
        expect([status, JSON.parse(body)]).toMatchObject([
          400,
          {
            code: 'BadRequest',
            message: `${field} ${reason}`,
            details: { field },
          },
        ])
      }
      expect((await edge.get(`${path}/revisions`, admin)).json<ClusterRevisions>().items).toHaveLength(1)
    },
  )

  it('an empty dryRun is refused, as it may be a dry run that was meant', async () => {
    for (const query of ['dryRun=', 'dryRun'])
      expect(refusal(await ask('PUT', `/settings?${query}`, {}))).toEqual(['BadRequest', 'dryRun'])
    expect((await edge.get(`${path}/revisions`, admin)).json<ClusterRevisions>().items).toHaveLength(1)
  })

  it.each([
    [{ ntpServers: ['a.example', 'b.example c.example'] }, 'ntpServers[1]'],
    [{ ntpServers: ['a.example\nFallbackNTP=b.example'] }, 'ntpServers[0]'],
    [{ sshKeys: ['ssh-ed25519 AAAA'] }, 'sshKeys[0]'],
    [{ sshKeys: [`command="id" ${publicKeys.ed25519}`] }, 'sshKeys[0]'],
  ])('settings that the host could not have are refused with their place: %j', async (body, field) => {
    for (const query of ['', '?dryRun=true'])
      expect(refusal(await ask('PUT', `/settings${query}`, body))).toEqual(['BadRequest', field])
    const within = { spec: { cloudConfig: { spec: { clusterConfig: body } } } }
    expect(refusal(await ask('PATCH', '', within, { 'content-type': merge }))).toEqual([
      'BadRequest',
      `spec.cloudConfig.spec.clusterConfig.${field}`,
    ])
    expect((await edge.get(`${path}/revisions`, admin)).json<ClusterRevisions>().items).toHaveLength(1)
  })

  it('a misspelt list of settings is refused, since it would empty the list that was meant', async () => {
    const body = { sshkeys: [publicKeys.ed25519] }
    expect(refusal(await ask('PUT', '/settings', body))).toEqual(['BadRequest', 'sshkeys'])
    expect((await edge.get(`${path}/revisions`, admin)).json<ClusterRevisions>().items).toHaveLength(1)
  })

  it('a dry run of what changes nothing says so', async () => {
    const { status, body } = await ask('PUT', '/settings?dryRun=true', {})
    expect([status, JSON.parse(body)]).toEqual([
      200,
      { isPossible: true, isChanged: false, isHeld: false, problems: [], plan: [] },
    ])
  })

  it('a rollback without a body needs a good revision before the present one', async () => {
    const reply = await edge.app.inject({
      ...{ method: 'POST', url: `${path}/rollback`, headers: { authorization: admin } },
    })
    expect(refusal(reply)).toEqual(['BadRequest', 'revision'])
    expect((await ask('POST', '/rollback', { revision: 1 })).status).toBe(204)
  })
})

describe('a cluster that is deleted', () => {
  useEdges(use)

  it('another ETag is 412, another name 404, and a cluster that is deleted 409', async () => {
    expect(refusal(await ask('PUT', '/settings', {}, { 'if-match': '"other"' }))[0]).toBe(
      'PreconditionFailed',
    )
    const slot = '/v1/edge-mgmt/clusters/archive/update'
    const none = '/v1/edge-mgmt/content/bundles/0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a44'
    for (const url of [path, slot, none]) {
      const headers = { authorization: admin, 'if-match': '"other"' }
      expect((await edge.app.inject({ method: 'DELETE', url, headers })).statusCode, url).toBe(412)
    }
    const { etag = '' } = (await edge.get(`${slot}/details`, admin)).headers as { etag?: string }
    const same = { authorization: admin, 'if-match': etag }
    expect((await edge.app.inject({ method: 'DELETE', url: slot, headers: same })).statusCode).toBe(204)
    expect((await ask('PATCH', '/other', { clusterConfigPatches: [] })).status).toBe(404)
    await edge.app.inject({ method: 'DELETE', url: path, headers: { authorization: admin } })
    expect((await newestAudit(edge, admin)).spec.message).toContain('isDeletionRequested: false -> true')
    const late = await ask('PUT', '/settings', {})
    expect(refusal(late)[0]).toBe('ClusterDeleting')
    expect((JSON.parse(late.body) as ErrorReply).message).toMatch(
      /is being deleted since 20\S+Z; the audit trail says who asked for it\. Wait until GET/,
    )
    const second = await edge.app.inject({
      ...{ method: 'PUT', url: path, headers: { authorization: admin, 'if-match': '"other"' }, payload: {} },
    })
    expect(second.statusCode).toBe(409)
  })
})
