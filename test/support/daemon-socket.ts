import { createServer, type RequestListener } from 'node:http'
import type { Bundle, BundleEntry, ContentUsage } from '../../src/content/schemas.ts'
import type { HostUsage } from '../../src/host/schemas.ts'
import { applicationsOf, detailsOf, eventOf } from './played-cluster.ts'
import { triedChange } from './running-cluster.ts'
import { hostBody } from './host-body.ts'
import { serviceStatus } from './test-edge.ts'

const time = '2026-01-31T08:00:00.000Z'
const sessions = ['alice', 'operator-of-the-night-shift'].map((userName, index) => ({
  ...{ uid: `3f2c5e2e-93a4-4c43-8f0e-00000000000${index}`, userName, role: 'viewer', isCurrent: index === 0 },
  ...{ address: '2001:db8:1234:5678:9abc:def0:1234:5678' },
  ...{ creationTimestamp: time, lastRenewalTimestamp: time, expirationTimestamp: time },
}))
const audits = Array.from({ length: 50 }, (_, index) => ({
  metadata: { createTimestamp: time, edgeHostId: 'edge', number: index + 1, uid: 'u' },
  spec: {
    actionType: 'update',
    actor: { actorType: 'user', uid: 'operator', address: '192.0.2.7' },
    message: 'Replace the public key that signatures of uploads are checked with',
    outcome: 'refused',
    resource: { kind: 'user' },
  },
}))
const bundleUid = '3f2c5e2e-93a4-4c43-8f0e-000000000002'
const digest = `sha256:${'d'.repeat(64)}`
const bundle: Bundle = {
  ...{ uid: bundleUid, name: 'shop of the northern region', indexDigest: digest, publishedAt: time },
  ...{ fileName: 'shop.tar.zst', fileSizeBytes: 5_000_000_000, sizeBytes: 8_000_000_000, blobCount: 120 },
  ...{ images: 2, architectures: ['amd64', 'arm64'], isForeign: true, definition: { digest, sizeBytes: 9 } },
  ...{ damagedBlobs: 1, isPinned: true, holders: ['cluster edge-1'] },
}
const entries: BundleEntry[] = [true, false].map((hasTag, number) => ({
  ...{ number, kind: 'image', digest, mediaType: 'application/vnd.oci.image.index.v1+json', hasTag },
  ...{
    name: 'registry.example/team/application',
    tag: '1.2.3',
    title: '',
    version: '',
    sizeBytes: 1_000_000,
  },
  platforms: [true, false].map((isCarried) => ({ os: 'linux', architecture: 'arm64', digest, isCarried })),
}))
const usage: ContentUsage = {
  ...{ bundles: 1, bundleBytes: 8_000_000_000, storedBytes: 7_000_000_000, sharedBytes: 1_000_000_000 },
  ...{ uploadBytes: 0, damagedBlobs: 1, damagedBytes: 5, isComplete: false },
  fileSystem: {
    ...{ directory: '/var/lib/edgehostd/content', mountPoint: '/', type: 'ext4', totalBytes: 20_000_000_000 },
    ...{ freeBytes: 9_000_000_000, reserveBytes: 3_000_000_000, reservedBytes: 0 },
    availableBytes: 6_000_000_000,
  },
}
const hostUsage: HostUsage = {
  uptimeSeconds: 273_600,
  load: { oneMinute: 0.5, fiveMinutes: 1.25, fifteenMinutes: 10 },
  memory: { totalBytes: 16_000_000_000, usedBytes: 5_000_000_000, availableBytes: 10_500_000_000 },
  clock: { isSynchronized: false },
  fileSystems: [
    {
      ...{ mountPoint: '/var/lib/edgehostd/content', totalBytes: 20_000_000_000 },
      ...{ usedBytes: 11_000_000_000, freeBytes: 9_000_000_000 },
    },
  ],
  links: [{ name: 'enp0s31f6', state: 'lowerlayerdown' }],
}
const deletion = { uid: bundleUid, name: bundle.name, entries: 2, blobs: 120, sizeBytes: 5, holders: [] }
const node = {
  ...{ nodeName: 'edge-of-the-northern-region', nodeState: 'Running' as const, ipv4: '192.0.2.7' },
  ...{ architecture: 'amd64', k8sVersion: 'v1.34.4', age: '3d4h' },
  health: { status: 'Unhealthy' as const, reason: 'container runtime network not ready' },
}
const cluster = detailsOf({
  ...{ clusterState: 'Error', phase: 'Failed', clusterStateReason: 'the step Pull the images has failed' },
  health: { status: 'Unhealthy', reason: 'the deployment web of the pack shop is not available' },
  nodePools: [{ pool: { name: 'control-plane-pool', isControlPlane: true }, nodes: [node] }],
  steps: [
    {
      ...{ key: 'images', title: 'Pull the images of Kubernetes', state: 'failed', failures: 2 },
      ...{ reason: 'there is no room on the disk for the image', nextTryTimestamp: time },
    },
  ],
})
const clusterEvents = [
  eventOf(2, 'StepFailed', 'there is no room on the disk for the image', 'images'),
  eventOf(1, 'StepStarted', 'Pull the images of Kubernetes', 'images'),
]
const revisions = ['rolledBack', 'good'].map((outcome, index) => ({
  ...{ revision: 2 - index, creationTimestamp: time, by: 'operator-of-the-night-shift', origin: 'update' },
  ...{ definition: { name: 'shop', version: '1.0.0' }, kubernetesVersion: '1.34.4', outcome },
  ...{ reason: 'the deployment web of the pack shop is not available', isActive: index === 1 },
}))
const content = '/v1/edge-mgmt/content'
const list = (items: readonly unknown[]) => ({
  items,
  listmeta: { continue: '', count: items.length, limit: items.length, offset: 0 },
})
const head = { number: 50, hash: 'a'.repeat(64) }
const current = '/v1/edge-mgmt/edgehosts/current'

/** A daemon on a socket with constant replies to the commands of edgehostctl. */
export async function startDaemonSocket(
  path: string,
): Promise<{ asked: string[]; stop: () => Promise<void> }> {
  const asked: string[] = []
  const replies: Readonly<Record<string, unknown>> = {
    '/v1/ping': { msg: 'pong' },
    [current]: JSON.parse(await hostBody()),
    [`${current}/status`]: serviceStatus('airgap'),
    [`${current}/usage`]: hostUsage,
    [`${current}/audits`]: list(audits),
    [`${current}/audits/verify`]: { isIntact: true, count: 50, first: 1, head, unwritten: 0 },
    '/v1/users/sessions': list(sessions),
    '/v1/edge-mgmt/cluster': { metadata: { name: 'shop' }, spec: { archiveUploadPath: '/definitions/1' } },
    '/v1/edge-mgmt/cluster/details': cluster,
    '/v1/edge-mgmt/cluster/revisions': { items: revisions },
    '/v1/edge-mgmt/cluster/profiles': triedChange,
    '/v1/edge-mgmt/clusters/archive/update/details': { archiveUploadPath: '', clusterProfileDetails: [] },
    '/v1/edge-mgmt/cluster/applications': applicationsOf('Failed', 'the chart web has failed'),
    '/v1/edge-mgmt/cluster/events': { ...list(clusterEvents), kubernetes: { state: 'read' } },
    [`${content}/bundles`]: list([bundle]),
    [`${content}/bundles/u`]: bundle,
    [`${content}/bundles/d`]: deletion,
    [`${content}/bundles/u/entries`]: list(entries),
    [`${content}/usage`]: usage,
  }
  const answer: RequestListener = ({ url = '' }, response) => {
    asked.push(url)
    response.setHeader('etag', '"one"')
    const [route = ''] = url.split('?')
    if (route === `${current}/audits/download`) response.end(Buffer.alloc(1_000_000, 'tar '))
    else if (Object.hasOwn(replies, route)) response.end(JSON.stringify(replies[route]))
    else response.writeHead(404).end('{"code":"NotFound","message":"there is nothing at this path"}')
  }
  const server = createServer(answer)
  await new Promise<void>((resolve) => void server.listen(path, resolve))
  return {
    asked,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
