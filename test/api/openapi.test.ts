import { createSign, generateKeyPairSync, randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Type } from 'typebox'
import { createDeclaringServer } from '../../build/declaring-server.ts'
import { hostApi } from '../../build/host-api.ts'
import { collectDocument, finishDocument, type ApiDocument } from '../../build/openapi.ts'
import { errorTable } from '../../src/edgehostd/declarations.ts'
import { readDocument, type DocumentedOperation } from '../support/api-document.ts'
import { busyboxBundle, putBundle } from '../support/content-bundles.ts'
import { definitionArchive } from '../support/definition-archives.ts'
import { confirmedChange } from '../support/played-network-trial.ts'
import { playedInventory } from '../support/played-inventory.ts'
import { hostBody } from '../support/host-body.ts'
import { createTestEdge, sessionsPath, type TestEdge } from '../support/test-edge.ts'
import {
  contentClient,
  contentUploadsPath,
  digestOf,
  imageLayout,
  layoutTar,
  noReserve,
  uploadContentPath,
} from '../support/content-uploads.ts'
import { plantCluster, postedCluster } from '../support/planted-cluster.ts'
import { shownPodLogs } from '../support/running-cluster.ts'
import { acceptedRenewal } from '../support/shown-certificates.ts'
import { form } from '../support/upload-server.ts'

const { document, operations, problemsOf } = readDocument()

const filesFolder = mkdtempSync(join(tmpdir(), 'edgehostd-files-'))
writeFileSync(join(filesFolder, 'some-id'), 'a line\n')

let edge: TestEdge
let sign: (content: Buffer) => Buffer
beforeAll(async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  sign = (content) => createSign('sha256').update(content).sign(privateKey)
  edge = await createTestEdge({
    hostBody: await hostBody(),
    rateLimits: unmet,
    content: noReserve,
    inventoryProgram: playedInventory().program,
    flags: [`--diagnosis.filesDirectory=${filesFolder}`],
    signingKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  })
  await putBundle(edge.stateDirectory, bundleUid, busyboxBundle)
})
afterAll(() => {
  rmSync(filesFolder, { recursive: true })
  return edge.stop()
})

// With its headers; no request reaches it.
const rate = { requestsPerSecond: 10_000, burst: 5 }
const unmet = { ...rate, enabled: true, login: rate, blobs: rate, resources: [], trackedKeys: 1_000 }

interface Ask {
  readonly url?: string
  readonly payload?: unknown
  readonly headers?: Record<string, string>
}

const bundleUid = '0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a44'
const bundlePath = `/v1/edge-mgmt/content/bundles/${bundleUid}`

const { archiveUploadPath = '' } = postedCluster.spec ?? {}

// What each operation needs to succeed, beside its path.
const hostActions = '/v1/edge-mgmt/edgehosts/current/actions'
/** A stop that is planned, in place of any other. */
function planOf(action: 'reboot' | 'shutdown'): string {
  edge.database.sql.exec('DELETE FROM host_stop')
  return `${hostActions}/${action}?at=${new Date(Date.now() + 3_600_000).toISOString()}`
}

const good: Record<string, () => Promise<Ask>> = {
  ...Object.fromEntries(
    [
      ['getNetworkInterface', 'interfaces/eth0'],
      ['getBond', 'bonds/bond0'],
      ['getVlan', 'vlans/bond0.7'],
      ['getBridge', 'bridges/br1'],
    ].map(([name, path]) => [name, async () => Promise.resolve({ url: `/v1/edge-mgmt/network/${path}` })]),
  ),
  ...Object.fromEntries(
    [
      ['updateNetworkInterface', 'interfaces/eth0/config', { type: 'dhcp' }],
      ['createBond', 'bonds/bond1', { members: ['eth1'] }],
      ['putBond', 'bonds/bond0', { members: ['eth1'] }],
      ['deleteBond', 'bonds/bond0', undefined],
      ['createVlan', 'vlans/eth0.9', { parentName: 'eth0', parentType: 'nic', vlanID: '9' }],
      ['putVlan', 'vlans/bond0.7', { parentName: 'bond0', parentType: 'bond', vlanID: '7' }],
      ['deleteVlan', 'vlans/bond0.7', undefined],
      ['createBridge', 'bridges/br2', { name: 'br2' }],
      ['putBridge', 'bridges/br1', { name: 'br1' }],
      ['deleteBridge', 'bridges/br1', undefined],
    ].map(([name, path, payload]) => [
      name,
      async () =>
        Promise.resolve({
          url: `/v1/edge-mgmt/network/${path as string}?dryRun=true`,
          ...(payload === undefined ? {} : { payload }),
        }),
    ]),
  ),
  setManagementInterface: async () => {
    endChange()
    return Promise.resolve({ payload: { name: 'br1' } })
  },
  updateConfigurations: async () => Promise.resolve({ payload: {} }),
  createUserData: async () => Promise.resolve({ payload: {} }),
  updateUserData: async () => Promise.resolve({ payload: {} }),
  getNetworkChange: async () => ({ url: `/v1/edge-mgmt/network/changes/${await beginChange()}` }),
  revertNetworkChange: async () => ({
    url: `/v1/edge-mgmt/network/changes/${await beginChange()}/actions/revert`,
  }),
  createTicket: async () => ({ payload: { path: '/v1/edge-mgmt/edgehosts/current/download-logs' } }),
  login: async () => ({ payload: { username: 'alice', password: 'alice pass' } }),
  renewToken: async () => ({ payload: { refreshToken: (await edge.login('bob')).refresh } }),
  updateCurrentUser: async () => ({ payload: { disablePasswordUpdate: false } }),
  logout: async () => ({ headers: { authorization: (await edge.login('bob')).access } }),
  resetPassword: async () => ({
    payload: { username: 'bobby', oldPassword: 'bobby pass', newPassword: 'bobby pass' },
  }),
  uploadClusterConfig: uploadDefinition,
  validateProfileVariables: async () => {
    const { url = '', payload, headers = {} } = await uploadDefinition()
    const upload = { method: 'POST', url, payload: payload as Buffer, headers } as const
    const { uploadPath } = (await edge.app.inject(upload)).json<{ uploadPath: string }>()
    return { payload: { archiveUploadPath: uploadPath, variables: [{ name: 'x', value: 'y' }] } }
  },
  createCluster: async () => {
    plantCluster(edge)
    const { access } = await edge.login('alice')
    return { payload: postedCluster, headers: { authorization: access } }
  },
  ...Object.fromEntries(
    [
      'getCluster',
      'listClusterRevisions',
      'deleteCluster',
      'getClusterDetails',
      'getClusterApplications',
      'getClusterCertificates',
      'listClusterNodes',
      'listMachinePools',
    ].map((name) => [
      name,
      async () => {
        plantCluster(edge)
        return {}
      },
    ]),
  ),
  // What differs in nothing is accepted as it is.
  ...Object.fromEntries(
    [
      ['replaceCluster', '', postedCluster],
      ['replaceNamedCluster', '/edge-1', postedCluster],
      ['replaceClusterProfiles', '/profiles', { spec: { archiveUploadPath } }],
      ['replaceClusterSettings', '/settings', {}],
      ['patchCluster', '', { spec: { archiveUploadPath } }],
      ['patchNamedCluster', '/edge-1', { clusterConfigPatches: [] }],
      ['rollBackCluster', '/rollback', { revision: 1 }],
    ].map(([name, path, payload]) => [
      name,
      async () => {
        plantCluster(edge)
        return { url: `/v1/edge-mgmt/cluster${path as string}`, payload }
      },
    ]),
  ),
  rebootEdgeHost: async () => ({ url: planOf('reboot') }),
  shutDownEdgeHost: async () => ({ url: planOf('shutdown') }),
  resetEdgeHost: async () => ({ url: `${hostActions}/reset?dryRun=true`, payload: {} }),
  cancelHostAction: async () => {
    const { access } = await edge.login('alice')
    const headers = { authorization: access }
    const reply = await edge.app.inject({ method: 'POST', url: planOf('reboot'), headers })
    return { url: `${hostActions}/${reply.json<{ uid: string }>().uid}` }
  },
  getBundle: async () => ({ url: bundlePath }),
  listBundleEntries: async () => ({ url: `${bundlePath}/entries` }),
  deleteBundle: async () => ({ url: `${bundlePath}?dryRun=true` }),
  beginContentUpload: () => uploadForm('index', contentUploadsPath, imageLayout([randomUUID()]).indexFile()),
  uploadContent: () => uploadForm('uploadFile', uploadContentPath, layoutTar(imageLayout([randomUUID()]))),
  getContentUpload: () => beginUpload(),
  deleteContentUpload: () => beginUpload(),
  listMissingContentBlobs: async () => {
    const { url, headers } = await beginUpload()
    return { url: `${url}/missing`, headers }
  },
  publishContentUpload: async () => {
    const { url, headers } = await beginUpload(true)
    return { url: `${url}/actions/publish`, headers }
  },
  appendToContentBlob: async () => {
    const { url, headers, content } = await beginUpload()
    const { length } = content
    return {
      url: `${url}/blobs/${digestOf(content)}`,
      payload: content,
      headers: {
        ...{ ...headers, 'content-type': 'application/octet-stream' },
        'content-range': `bytes 0-${length - 1}/${length}`,
      },
    }
  },
  checkConnectivity: async () => ({
    url: '/v1/edge-mgmt/edgehosts/connectivity/check?kind=dns&target=127.0.0.1',
  }),
  listErrorLogs: async () => ({ url: '/v1/edge-mgmt/edgehosts/current/error-logs?logCount=1' }),
  // The registry makes its password when it starts.
  getContentRegistryPassword: async () => {
    await edge.daemon.start()
    return {}
  },
  endSession: async () => {
    const { access } = await edge.login('bob')
    const { items } = (await edge.get(sessionsPath, access)).json<{ items: { uid: string }[] }>()
    return { url: `${sessionsPath}/${items[0]?.uid}`, headers: { authorization: access } }
  },
}

/** A change of the network that is tried; the former one is taken back. */
async function beginChange(): Promise<string> {
  const { access } = await edge.login('alice')
  endChange()
  const { uid } = (
    await edge.app.inject({
      method: 'PUT',
      url: '/v1/edge-mgmt/network/interfaces/eth0/config',
      payload: { type: 'dhcp' },
      headers: { authorization: access },
    })
  ).json<{ uid: string }>()
  return uid
}

/** A change of the cluster waits for one of the network. */
function endChange(): void {
  if (edge.network.isOpen()) edge.network.end('reverted\nasked\n1800000000000\n\n')
}

const signed = (content: Buffer) => ({ name: 'signature', fileName: 's', content: sign(content) })

/** An upload of a bundle that no other operation has, and its first manifest. */
async function beginUpload(isSent = false) {
  const { access } = await edge.login('alice')
  const client = contentClient(edge, access)
  const layout = imageLayout([randomUUID()])
  const index = layout.indexFile()
  const { uid } = (await client.begin(index, signed(index))).json<{ uid: string }>()
  const [manifest] = await client.missing(uid)
  if (isSent) await client.sendAll(uid, layout)
  const content = layout.blobs.get(manifest?.digest.slice(7) ?? '') ?? Buffer.alloc(0)
  return { uid, url: `${contentUploadsPath}/${uid}`, content, headers: { authorization: access } }
}

async function uploadForm(field: string, url: string, content: Buffer): Promise<Ask> {
  const { type, body } = form({ name: field, fileName: 'f', content }, signed(content))
  const { access } = await edge.login('alice')
  return { url, payload: body, headers: { authorization: access, 'content-type': type } }
}

async function uploadDefinition(): Promise<Ask> {
  const content = definitionArchive()
  const file = { name: 'uploadFile', fileName: 'factory.tgz', content }
  const { type, body } = form(file, { name: 'signature', content: sign(content) })
  const { access } = await edge.login('alice')
  return {
    url: '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig',
    payload: body,
    headers: { authorization: access, 'content-type': type },
  }
}

async function ask(operation: DocumentedOperation, { url, payload, headers = {} }: Ask) {
  const {
    statusCode,
    headers: fields,
    body,
  } = await edge.app.inject({
    // From elsewhere: the host's own loopback needs no token for its metrics.
    remoteAddress: '192.0.2.7',
    method: operation.method as 'GET',
    url: url ?? operation.path.replace(/\{[^}]+\}/g, 'some-id'),
    headers,
    ...(payload === undefined ? {} : { payload: payload as object }),
  })
  return { status: statusCode, headers: fields, body }
}

describe('openapi.json', () => {
  it('openapi.json has every route of the daemon, and no other', () => {
    // The pages for browsers are no part of the API.
    const isPage = (url: string) => url === '/' || url.startsWith('/console/')
    const declared = edge.routes.routes.filter(({ method, url }) => method !== 'HEAD' && !isPage(url))
    const spelled = declared.map(({ method, url }) => `${method} ${url.replace(/:([A-Za-z]+)/g, '{$1}')}`)
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(spelled.sort())
  })

  it('openapi.json is what the daemon serves', async () => {
    expect((await edge.get('/openapi.json')).json()).toEqual(document)
  })

  // User data is for a host without a cluster; the others need one.
  const turnOf = ({ operationId }: (typeof operations)[number]) =>
    ['createUserData', 'updateUserData'].includes(operationId) ? 0 : operationId === 'deleteCluster' ? 2 : 1
  const deletionLast = [...operations].sort((one, other) => turnOf(one) - turnOf(other))
  // There is nothing to renew without a control plane, no pod, and no ping; an injected request has no connection that proves anything.
  const without = ['renewClusterCertificates', 'getPodLogs', 'downloadKubeconfig', 'confirmNetworkChange']
  without.push('pingEndpoint', 'traceRoute', 'downloadLogs', 'getIcon')
  // Verbs of ours, which run as root on a booted host.
  without.push('setHostName', 'setHostTime')
  // A minimal Debian without systemd has no journal.
  if (!existsSync('/usr/bin/journalctl')) without.push('readLogs')
  const succeeding = deletionLast.filter(({ operationId }) => !without.includes(operationId))
  it.each(succeeding)('$method $path: the reply is as documented', async (operation) => {
    const { access } = await edge.login('alice')
    if (operation.operationId === 'deleteCluster') endChange()
    const wanted = { headers: { authorization: access }, ...(await good[operation.operationId]?.()) }
    const reply = await ask(operation, wanted)
    expect(reply.status, reply.body).toBeLessThan(300)
    expect(problemsOf(operation, reply)).toEqual([])
  })

  it.each([
    ['renewClusterCertificates', 201, acceptedRenewal],
    ['getPodLogs', 200, shownPodLogs],
    ['confirmNetworkChange', 200, confirmedChange],
  ])('the reply to %s, which needs more than this daemon has, is as documented', (name, status, body) => {
    const operation = operations.find(({ operationId }) => operationId === name)!
    const headers = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'x', audituid: 'x' }
    const reply = { status, headers }
    expect(problemsOf(operation, { ...reply, body: JSON.stringify(body) })).toEqual([])
    expect(problemsOf(operation, { ...reply, body: '{}' })).not.toEqual([])
  })

  it.each(operations)('$method $path: refusals are as documented', async (operation) => {
    const { access } = await edge.login('bob')
    const authorization = access
    const tries: Ask[] = [
      {},
      { headers: { authorization: 'garbage' } },
      { headers: { authorization } },
      { headers: { cookie: `Authorization=${access}` } },
      { headers: { authorization, 'content-type': 'application/json' }, payload: '{"broken' },
      { headers: { authorization, 'content-type': 'text/plain' }, payload: 'x' },
      { headers: { authorization }, payload: { username: 5 } },
      { headers: { authorization }, payload: { large: 'x'.repeat(70_000) } },
      { headers: { authorization }, url: operation.path.replace(/\{[^}]+\}/g, 'x'.repeat(300)) },
      {
        headers: { authorization },
        url: `${operation.path.replace(/\{[^}]+\}/g, 'x')}?limit=0&refresh=maybe`,
      },
    ]
    for (const each of tries) {
      if (operation.operationId === 'logout' && each.headers?.authorization === access) continue
      if (each.payload !== undefined && operation.method === 'GET') continue
      const reply = await ask(operation, each)
      expect(problemsOf(operation, reply), JSON.stringify(each).slice(0, 100)).toEqual([])
    }
  })

  it.each(operations)('$method $path: the schemes of its token are documented', (operation) => {
    const needsToken = operation['x-access'] !== 'open'
    expect(operation.responses['401'] !== undefined || !needsToken).toBe(true)
    const schemes = (operation.security as Record<string, unknown>[]).flatMap((each) => Object.keys(each))
    if (needsToken) expect(schemes).toEqual(['token', 'cookie'])
    if (needsToken) expect(operation.security).not.toContainEqual({})
  })

  it('openapi.json has an example for every body it documents', () => {
    const without = operations.flatMap(({ operationId, requestBody, responses }) => {
      const media = [requestBody, ...Object.values(responses)].flatMap((part) =>
        Object.entries(part?.content ?? {}),
      )
      const bare = media.filter(([type, each]) => type === 'application/json' && each.example === undefined)
      return bare.length > 0 ? [operationId] : []
    })
    // The document has no example of itself.
    expect(without).toEqual(['getOpenapi'])
  })
})

describe('the check of a reply', () => {
  it('the check of a reply finds a header that is not documented, on errors too', () => {
    const problems = (operationId: string, status: number, more: Record<string, string>) =>
      problemsOf(
        operations.find((each) => each.operationId === operationId)!,
        {
          status,
          headers: { ...headers, ...more },
          body: status === 200 ? '{"msg":"pong"}' : '{"code":"x","message":"x"}',
        },
      )
    expect(problems('ping', 200, { ratelimit: 'x' }).join()).toContain('ratelimit, which is not documented')
    expect(problems('getCurrentUser', 401, { audituid: 'x' }).join()).toContain('not documented')
    expect(problems('getCurrentUser', 401, { 'ratelimit-policy': 'x' })).toEqual([])
    expect(problems('logout', 401, {}).join()).toContain('lacks the header AuditUid')
    expect(problems('logout', 401, { audituid: 'x' })).toEqual([])
  })

  it('the document has no 507 for a read, which writes nothing', () => {
    const { responses } = operations.find(({ operationId }) => operationId === 'downloadAudits')!
    expect(Object.keys(responses)).not.toContain('507')
  })

  const ping = operations.find(({ operationId }) => operationId === 'ping')!
  const headers = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'x' }

  it.each([
    ['another status', 418, '{"msg":"pong"}', 'not documented'],
    ['another type', 200, '{"msg":5}', 'must be string'],
    ['a field too few', 200, '{}', 'must have required property'],
    ['a field too many', 200, '{"msg":"pong","secret":1}', 'must NOT have additional properties'],
  ])('the check of a reply finds %s', (_what, status, body, problem) => {
    expect(problemsOf(ping, { status, headers, body }).join()).toContain(problem)
  })
})

describe('a route in its sunset', async () => {
  const app = createDeclaringServer()
  await collectDocument(app, hostApi('1.0.0'))
  const schema = { operationId: 'old', summary: 'Old', tags: ['service'], response: { 200: Type.Object({}) } }
  app.get(
    '/v1/old',
    {
      config: {
        access: 'admin',
        airgapOnly: true,
        lifecycle: { phase: 'sunset', date: '2027-06-30', successor: '/v2/new' },
      },
      schema,
    },
    async () => ({}),
  )
  app.get(
    '/v2/new',
    { config: { access: 'viewer' }, schema: { ...schema, operationId: 'new' } },
    async () => ({}),
  )
  await app.ready()
  const { paths } = finishDocument(
    app.swagger() as unknown as ApiDocument,
    { operations: {}, errors: {} },
    errorTable,
  )

  it('a route in its sunset is deprecated in the document, with its date and its successor', () => {
    expect(paths['/v1/old']?.get).toMatchObject({
      deprecated: true,
      'x-lifecycle': { phase: 'sunset', date: '2027-06-30', successor: '/v2/new' },
      'x-airgap-only': true,
      responses: {
        200: {
          headers: {
            Deprecation: { example: '@1814313600' },
            Sunset: { example: 'Wed, 30 Jun 2027 00:00:00 GMT' },
            Link: { example: '</v2/new>; rel="successor-version"' },
          },
        },
      },
    })
  })

  it('a route in its sunset does not change the documentation of others', () => {
    expect(paths['/v2/new']?.get).not.toHaveProperty('deprecated')
    const headers = Object.keys(paths['/v2/new']?.get?.responses['200']?.headers ?? {})
    expect(headers).toEqual(['ETag', 'X-Request-Id', 'RateLimit', 'RateLimit-Policy'])
  })
})
