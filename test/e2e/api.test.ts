import { createSign, generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readDocument, type DocumentedOperation, type ReadDocument } from '../support/api-document.ts'
import {
  contentUploadsPath,
  digestOf,
  imageLayout,
  layoutTar,
  uploadContentPath,
} from '../support/content-uploads.ts'
import { definitionArchive } from '../support/definition-archives.ts'
import { uploadPath } from './host/definitions.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import type { Ask } from './host/http.ts'

const right = 'right canary 1201'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })

let host: Edgehostd
let served: ReadDocument

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const key = Buffer.from(pem).toString('base64')
  await host.configure('signing', `content: {signing: {publicKey: {base64EncodedValue: ${key}}}}\n`)
  served = readDocument((await host.http('GET', '/openapi.json')).text)
})
afterAll(() => host.unplug())

/** A file with its signature, as curl sends it. */
async function signedForm(field: string, name: string, content: Buffer): Promise<string[]> {
  const file = join(host.folder, name)
  await writeFile(file, content)
  await writeFile(`${file}.sig`, createSign('sha256').update(content).sign(privateKey))
  return [`${field}=@${file}`, `signature=@${file}.sig`]
}

const definitionForm = () => signedForm('uploadFile', 'factory.tgz', definitionArchive())

let layouts = 0
/** A bundle that no other request has. */
const newLayout = () => imageLayout([`layer ${(layouts += 1)}`])
const bundleForm = () => signedForm('uploadFile', 'bundle.tar', layoutTar(newLayout()))

/** Publishes a bundle. @returns a token and its path */
async function publishBundle() {
  const { token } = await host.openSession('anna', right)
  const uploaded = await host.http('POST', uploadContentPath, { token, form: await bundleForm() })
  return { token, path: `/v1/edge-mgmt/content/bundles/${uploaded.json.uid}` }
}

/** Begins an upload blob by blob. @returns a token, its path, and how to send all blobs */
async function beginUpload() {
  const { token } = await host.openSession('anna', right)
  const layout = newLayout()
  const form = await signedForm('index', 'index.json', layout.indexFile())
  const begun = await host.http('POST', contentUploadsPath, { token, form })
  const path = `${contentUploadsPath}/${begun.json.uid}`
  /** Requests that send its blobs, manifests first. */
  const blobs = [...layout.blobs.values()].toReversed().map((bytes) => ({
    ...{ token, path: `${path}/blobs/${digestOf(bytes)}`, body: bytes.toString() },
    headers: {
      'Content-Type': 'application/octet-stream',
      'Content-Range': `bytes 0-${bytes.length - 1}/${bytes.length}`,
    },
  }))
  return { token, path, blobs }
}

// The requests of operations that need more than a token.
const asks: Record<string, () => Promise<Ask & { path?: string }>> = {
  listErrorLogs: async () => ({ path: '/v1/edge-mgmt/edgehosts/current/error-logs?logCount=5' }),
  login: async () => ({ body: { username: 'anna', password: right } }),
  renewToken: async () => ({ body: { refreshToken: (await host.openSession('anna', right)).refreshToken } }),
  resetPassword: async () => ({
    body: { username: 'anna', oldPassword: right, newPassword: `${right} anew` },
  }),
  uploadClusterConfig: async () => ({ form: await definitionForm() }),
  validateProfileVariables: async () => {
    const { token } = await host.openSession('anna', right)
    const uploaded = await host.http('POST', uploadPath, { token, form: await definitionForm() })
    return {
      token,
      body: { archiveUploadPath: uploaded.json.uploadPath, variables: [{ name: 'x', value: 'y' }] },
    }
  },
  uploadContent: async () => ({ form: await bundleForm() }),
  getUploadedContentDetails: async () => ({ token: (await publishBundle()).token }),
  getBundle: publishBundle,
  deleteBundle: publishBundle,
  listBundleEntries: async () => {
    const { token, path } = await publishBundle()
    return { token, path: `${path}/entries` }
  },
  beginContentUpload: async () => ({
    form: await signedForm('index', 'index.json', newLayout().indexFile()),
  }),
  getContentUpload: async () => {
    const { token, path } = await beginUpload()
    return { token, path }
  },
  deleteContentUpload: async () => {
    const { token, path } = await beginUpload()
    return { token, path }
  },
  listMissingContentBlobs: async () => {
    const { token, path } = await beginUpload()
    return { token, path: `${path}/missing` }
  },
  appendToContentBlob: async () => {
    const { blobs } = await beginUpload()
    return blobs[0]!
  },
  publishContentUpload: async () => {
    const { token, path, blobs } = await beginUpload()
    for (const { path: blob, ...request } of blobs) await host.http('PATCH', blob, request)
    return { token, path: `${path}/actions/publish` }
  },
  createTicket: async () => ({ body: { path: '/v1/edge-mgmt/edgehosts/current/audits/download' } }),
  endSession: async () => {
    const { token } = await host.openSession('anna', right)
    const { items } = (await host.http('GET', '/v1/users/sessions', { token })).json
    return { token, path: `/v1/users/sessions/${items[0].uid}` }
  },
}

// These need a cluster, and the stream does not end: cluster/life.test.ts.
const ofCluster = new Set([
  ...['createCluster', 'getCluster', 'deleteCluster', 'getClusterDetails', 'getClusterApplications'],
  ...['listClusterNodes', 'listMachinePools', 'streamEvents', 'listClusterRevisions', 'rollBackCluster'],
  ...['replaceCluster', 'replaceNamedCluster', 'replaceClusterProfiles', 'replaceClusterSettings'],
  ...['patchCluster', 'patchNamedCluster', 'getClusterCertificates', 'renewClusterCertificates'],
  ...['getPodLogs', 'downloadKubeconfig'],
])

// These need a target, a file, a link or a change, end the host or change what the others need: diagnosis, network-owners, network-change,
// host-setup, configuration, power-stops and reset.
const ofOthers = new Set([
  ...['pingEndpoint', 'traceRoute', 'checkConnectivity', 'downloadFile', 'downloadLogs', 'updateCurrentUser'],
  'getIcon',
  ...['getNetworkInterface', 'updateNetworkInterface', 'getNetworkChange'],
  ...['confirmNetworkChange', 'revertNetworkChange'],
  ...['Bond', 'Vlan', 'Bridge'].flatMap((kind) =>
    ['get', 'put', 'create', 'delete'].map((verb) => `${verb}${kind}`),
  ),
  ...['setManagementInterface', 'setHostName', 'setHostTime'],
  ...['updateConfigurations', 'createUserData', 'updateUserData'],
  ...['rebootEdgeHost', 'shutDownEdgeHost', 'cancelHostAction', 'resetEdgeHost'],
])

async function ask(operation: DocumentedOperation): Promise<void> {
  const { path = operation.path, ...rest } = (await asks[operation.operationId]?.()) ?? {}
  const token = rest.token ?? (await host.openSession('anna', right)).token
  const reply = await host.http(operation.method, path, { token, ...rest })
  expect(reply.status, `${operation.method} ${path}: ${reply.text.slice(0, 300)}`).toBeLessThan(300)
  const headers = Object.fromEntries(
    Object.entries(reply.headers).map(([name, all]) => [name, all.join(', ')]),
  )
  const observed = { status: reply.status, headers, body: reply.text }
  expect(served.problemsOf(operation, observed), `${operation.method} ${path}`).toEqual([])
}

describe('the running daemon', () => {
  it('the daemon serves the API document of this checkout', () => {
    expect(served.document).toEqual(readDocument().document)
  })

  it('the daemon is alive at once and ready once it has read the host', async () => {
    expect(await host.http('GET', '/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } })
    await eventually(async () =>
      expect(await host.http('GET', '/readyz')).toMatchObject({ status: 200, json: { status: 'ok' } }),
    )
  })

  it('the daemon answers every operation as documented', async () => {
    // The new password would end the session of later requests.
    const isLast = ({ operationId }: DocumentedOperation) => operationId === 'resetPassword'
    const isTriedHere = ({ operationId }: DocumentedOperation) =>
      !ofCluster.has(operationId) && !ofOthers.has(operationId)
    const first = served.operations.filter((each) => !isLast(each) && isTriedHere(each))
    for (const operation of first) await ask(operation)
    for (const operation of served.operations.filter(isLast)) await ask(operation)
  })
})

describe('a database that cannot be written', () => {
  it('a database that cannot be written keeps the daemon alive and not ready, until it can be written again', async () => {
    const status = async (path: string) => (await host.http('GET', path)).status
    await host.sh(`
      systemctl stop edgehostd
      cp -a /var/lib/edgehostd /root/state; rm -f /root/state/reserve
      mount -t tmpfs -o size=4m,mode=700 none /var/lib/edgehostd
      cp -a /root/state/. /var/lib/edgehostd
      systemctl start edgehostd`)
    // It is not ready before the facts of the host are read either.
    await eventually(async () => expect(await status('/readyz')).toBe(200), 45_000)
    await host.sh('dd if=/dev/zero of=/var/lib/edgehostd/ballast bs=4k status=none || true')
    await eventually(async () => expect(await status('/readyz')).toBe(503), 45_000)
    expect(await status('/healthz')).toBe(200)
    await host.sh('rm /var/lib/edgehostd/ballast')
    await eventually(async () => expect(await status('/readyz')).toBe(200), 45_000)
    const said = (await host.log()).filter(({ msg }) => msg === 'not ready')
    expect(said.at(-1)).toMatchObject({ failed: ['database'] })
  })
})
