import { createSign, generateKeyPairSync } from 'node:crypto'
import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import type { Examples } from '../../build/openapi.ts'
import type { ClusterConfigArchiveDetails, ClusterProfileDetail } from '../../src/definition/schemas.ts'
import type { HostUsage } from '../../src/host/schemas.ts'
import type { HostTime } from '../../src/setup/schemas.ts'
import type { LifecycleEvents } from '../../src/cluster/events/schemas.ts'
import { clusterEvents, errorLog } from '../support/event-examples.ts'
import { busyboxBundle, putBundle } from '../support/content-bundles.ts'
import { definitionArchive } from '../support/definition-archives.ts'
import { diagnosisExamples } from '../support/diagnosis-examples.ts'
import { hostBody } from '../support/host-body.ts'
import { platformLink } from '../support/link-example.ts'
import { plantCluster, postedCluster } from '../support/planted-cluster.ts'
import { runningApplications } from '../support/running-applications.ts'
import { publicKeys } from '../support/ssh-keys.ts'
import { acceptedRenewal, shownCertificates } from '../support/shown-certificates.ts'
import {
  neededImage,
  plannedStep,
  runningCluster,
  shownPodLogs,
  triedChange,
  warning,
} from '../support/running-cluster.ts'
import { proxyUnits } from '../../src/configuration/placement.ts'
import { confirmedChange, triedChangeOfNetwork } from '../support/played-network-trial.ts'
import { playedInventory } from '../support/played-inventory.ts'
import {
  createTestEdge,
  currentPath,
  loginPath,
  logoutPath,
  renewalPath,
  resetPath,
  serviceStatus,
  sessionsPath,
  type LoginReply,
} from '../support/test-edge.ts'
import {
  contentClient,
  contentUploadsPath,
  imageLayout,
  layoutTar,
  noReserve,
} from '../support/content-uploads.ts'
import { form } from '../support/upload-server.ts'

const attentionExample = {
  items: [
    {
      ...{ code: 'PodsFailing', severity: 'error' },
      message: 'the pack web: Crashing: pod web-7d9c5b8f6-x2x4v: container web: it ended with exit code 1',
      command: 'edgehostctl cluster logs web-7d9c5b8f6-x2x4v --namespace shop',
      object: { kind: 'Pod', name: 'web-7d9c5b8f6-x2x4v', namespace: 'shop' },
      sinceTimestamp: '2026-01-31T09:31:00.000Z',
    },
  ],
}
const hostUsage = {
  uptimeSeconds: 183_402,
  load: { oneMinute: 0.42, fiveMinutes: 0.37, fifteenMinutes: 0.31 },
  memory: { totalBytes: 16_624_553_984, usedBytes: 5_130_264_576, availableBytes: 11_494_289_408 },
  clock: { isSynchronized: true },
  fileSystems: [
    {
      mountPoint: '/',
      totalBytes: 250_790_436_864,
      usedBytes: 81_604_378_624,
      freeBytes: 156_375_564_288,
    },
  ],
  links: [{ name: 'eth0', state: 'up' }],
} satisfies HostUsage
const stopUid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'
const powerExamples = {
  rebootEdgeHost: { reply: { uid: stopUid, message: 'the host is being rebooted; its sessions end now' } },
  shutDownEdgeHost: {
    reply: {
      uid: stopUid,
      message: 'the host is being shut down; its sessions end now, and it has to be turned on again',
    },
  },
  getHostActions: {
    reply: {
      items: [],
      last: {
        ...{
          uid: stopUid,
          action: 'reboot',
          state: 'done',
          message: 'new memory',
          isForced: false,
          by: 'alice',
        },
        creationTimestamp: '2026-01-31T09:30:00.000Z',
      },
      boot: {
        startTimestamp: '2026-01-31T09:30:49.000Z',
        message: 'this host is back after 48 s: reboot by alice: new memory',
        isOrderly: true,
        backAfterSeconds: 48,
      },
    },
  },
  resetEdgeHost: {
    request: { hostName: 'edge-1' },
    replies: {
      200: {
        hostName: 'edge-1',
        removes: [
          {
            phase: 'cluster',
            items: [
              'the cluster shop (0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a45), with everything that runs in it and the data of its volumes',
            ],
          },
          { phase: 'definitions', items: ['the definition shop 1.2.0 in the slot overridden'] },
          { phase: 'content', items: [] },
          { phase: 'sessions', items: ['a session of alice from 192.0.2.40'] },
        ],
        stays: ['accounts of the operating system', 'the audit trail'],
        problems: [],
      },
      202: {
        uid: stopUid,
        message:
          'the host is being reset; its sessions end now, GET /v1/edge-mgmt/edgehosts/current/actions shows the phase',
      },
    },
  },
}
const hostPath = '/v1/edge-mgmt/edgehosts/current'
const archivePath = '/v1/edge-mgmt/clusters/archive'
const actions = `${hostPath}/actions`
const uploadPath = `${actions}/upload-clusterconfig`
const keyPath = `${actions}/content/signing-public-key`
const contentPath = '/v1/edge-mgmt/content'
const bundleUid = '0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a44'
const registryPath = '/v1/edge-mgmt/cluster/registry'
const contentRegistry = {
  isEnabled: true,
  address: '127.0.0.1',
  port: 5081,
  isTls: false,
  isAnonymous: false,
  isListening: true,
  username: 'edgehostd',
  hosts: ['docker.io'],
}
const registryHealth = {
  State: 'Healthy',
  Message: 'the registry listens on http://127.0.0.1:5081',
  DiskCapacity: '100.0 GiB',
  DiskUsed: '42.3 GiB',
  DiskAvailable: '57.7 GiB',
  UsagePercentage: '42%',
}

const contentUsage = {
  bundles: 2,
  bundleBytes: 11_811_160_064,
  storedBytes: 9_663_676_416,
  sharedBytes: 2_147_483_648,
  uploadBytes: 0,
  damagedBlobs: 0,
  damagedBytes: 0,
  isComplete: true,
  fileSystem: {
    directory: '/var/lib/edgehostd/content',
    mountPoint: '/var/lib/edgehostd/content',
    type: 'ext4',
    totalBytes: 107_374_182_400,
    freeBytes: 96_636_764_160,
    reserveBytes: 16_106_127_360,
    reservedBytes: 0,
    availableBytes: 80_530_636_800,
  },
}
const busyboxDigest = 'sha256:3d0e4d8b9d1c5b1ad2b2f2f6b6a8b7a6e2c3f1d5c9b8a7f6e5d4c3b2a1908f7e'
const hostImages = {
  items: [
    {
      id: busyboxDigest,
      title: 'docker.io/library/busybox:1.36',
      digest: busyboxDigest,
      names: [{ name: 'docker.io/library/busybox', tag: '1.36', hasTag: true }],
      sizeBytes: 2_218_763,
      platforms: [{ os: 'linux', architecture: 'amd64' }],
      locations: [
        { runtime: 'store', endpoint: '', namespace: '' },
        {
          runtime: 'containerd',
          endpoint: '/run/containerd/containerd.sock',
          namespace: 'k8s.io',
          readAt: '2026-01-31T08:00:41.000Z',
        },
      ],
      canBePulledHere: true,
    },
  ],
  listmeta: { continue: '', count: 1, limit: 1, offset: 1 },
  sources: [
    { runtime: 'store', endpoint: '', state: 'read', images: 1 },
    {
      runtime: 'containerd',
      endpoint: '/run/containerd/containerd.sock',
      state: 'read',
      images: 1,
      readAt: '2026-01-31T08:00:41.000Z',
    },
  ],
}
const validatePath = '/v1/edge-mgmt/cluster/profiles/variables/validate'
const variables = [
  { name: 'replicas', displayName: 'Replicas', format: 'number', required: true, defaultValue: '1' },
  { name: 'password', inputType: 'text' as const, isSensitive: true, defaultValue: 'correct horse' },
]
const values = 'replicas: {{ .spectro.var.replicas }}\npassword: "{{ .spectro.var.password }}"\n'

// The examples of the API document are the replies of this test. After a change: vitest run -u test/api/examples.test.ts
it('the examples of the API document are what the edge replies', async () => {
  const cluster: { running?: readonly ClusterProfileDetail[] } = {}
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'prime256v1',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const edge = await createTestEdge({
    hostBody: await hostBody(),
    content: noReserve,
    inventoryProgram: playedInventory().program,
    signingKey: publicKey,
    running: () => cluster.running,
    guard: { delayAfterFailures: 1, firstDelaySeconds: 3 },
  })
  await putBundle(edge.stateDirectory, bundleUid, busyboxBundle)
  const { access } = await edge.login('bob')
  const examples: Examples & { operations: object; errors: object } = { operations: {}, errors: {} }
  const keep = (part: 'operations' | 'errors', name: string | number, example: unknown) => {
    Object.assign(examples[part], { [name]: example })
  }

  const ask = async (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    payload?: unknown,
    headers: Record<string, string> = { authorization: access },
  ) =>
    edge.app.inject({
      method,
      url,
      headers: { ...headers, 'x-request-id': 'build-42' },
      ...(payload === undefined ? {} : { payload: payload as object }),
    })
  const succeed = async (name: string, ...question: Parameters<typeof ask>) => {
    const reply = await ask(...question)
    expect(reply.statusCode, reply.body).toBeLessThan(300)
    const request = question[2]
    keep('operations', name, {
      ...(request === undefined ? {} : { request }),
      ...(reply.body === '' ? {} : { reply: reply.json<unknown>() }),
    })
    return reply
  }
  const fail = async (status: number, ...question: Parameters<typeof ask>) => {
    const reply = await ask(...question)
    expect(reply.statusCode, reply.body).toBe(status)
    keep('errors', status, reply.json())
  }

  await succeed('ping', 'GET', '/v1/ping')
  await succeed('getHealth', 'GET', '/healthz')
  // The host is ready when the definitions of its content are known; the first request for it opens the content.
  await ask('GET', `${contentPath}/bundles`)
  await succeed('getReadiness', 'GET', '/readyz')
  const login = await succeed('login', 'POST', loginPath, { username: 'alice', password: 'alice pass' })
  const { Token } = login.json<LoginReply>()
  await succeed('renewToken', 'POST', renewalPath, { refreshToken: Token.RefreshToken })
  await succeed('resetPassword', 'POST', resetPath, {
    username: 'fresh',
    oldPassword: 'fresh pass',
    newPassword: 'a better pass',
  })
  await succeed('getCurrentUser', 'GET', currentPath)
  await succeed('listSessions', 'GET', sessionsPath)
  await succeed('getCurrentEdgeHost', 'GET', hostPath)
  const doing = await succeed('getCurrentEdgeHostUsage', 'GET', `${hostPath}/usage`)
  expect(Object.keys(doing.json()).sort()).toEqual(Object.keys(hostUsage).sort())
  keep('operations', 'getCurrentEdgeHostUsage', { reply: hostUsage })
  await succeed('getSettings', 'GET', '/v1/edge-mgmt/settings')
  expect((await ask('GET', '/v1/edge-mgmt/platform')).json()).toMatchObject({ mode: 'airgap' })
  keep('operations', 'getPlatformLink', { reply: platformLink })
  const admin = { authorization: Token.Authorization }
  const status = await succeed('getServiceStatus', 'GET', `${hostPath}/status`, undefined, admin)
  // They differ with each host and time.
  const example = serviceStatus('airgap')
  expect(Object.keys(status.json())).toEqual(Object.keys(example))
  keep('operations', 'getServiceStatus', { reply: example })
  const attention = await succeed('getAttention', 'GET', `${hostPath}/attention`, undefined, admin)
  expect(Object.keys(attention.json())).toEqual(['items'])
  keep('operations', 'getAttention', { reply: attentionExample })
  for (const [operation, example] of Object.entries(powerExamples)) keep('operations', operation, example)
  await succeed('getCurrentEdgeHostInventory', 'GET', `${hostPath}/inventory`, undefined, admin)
  await succeed('getHostName', 'GET', `${hostPath}/hostname`)
  keep('operations', 'setHostName', { request: { hostName: 'line-7' } })
  keep('operations', 'getHostTime', {
    reply: { ntpServers: ['ntp.example.com'], service: 'systemd-timesyncd.service' } satisfies HostTime,
  })
  keep('operations', 'setHostTime', { request: { ntpServers: ['ntp.example.com', '192.0.2.123'] } })
  const proxied = {
    httpsProxy: 'http://edge:right%20canary%200801@proxy.plant.example:3128',
    noProxy: '.plant.example',
  }
  const judgedProxy = await succeed(
    'updateConfigurations',
    'PUT',
    `${hostPath}/configurations?dryRun=true`,
    proxied,
    admin,
  )
  expect(judgedProxy.json()).toMatchObject({ restarts: [...proxyUnits] })
  keep('operations', 'updateConfigurations', {
    request: { ...proxied, httpsProxy: 'http://edge:PASSWORD@proxy.plant.example:3128' },
    replies: {
      200: {
        changes: [
          'httpsProxy: none -> http://edge:********@proxy.plant.example:3128',
          'noProxy: none -> .plant.example',
        ],
        restarts: ['edgehostd-containerd.service', 'kubelet.service'],
        noProxy: [
          '.plant.example',
          'localhost',
          '127.0.0.0/8',
          '::1',
          '192.0.2.0/24',
          '.svc',
          '.cluster.local',
        ],
      },
      202: {
        uid: stopUid,
        message: `the configuration is being put in place; GET ${hostPath}/configurations/status shows it`,
      },
    },
  })
  expect((await ask('PUT', `${hostPath}/configurations`, proxied, admin)).statusCode).toBe(202)
  await succeed('getConfigurations', 'GET', `${hostPath}/configurations`)
  const placed = await ask('GET', `${hostPath}/configurations/status`, undefined, admin)
  expect(placed.json()).toMatchObject({ uid: expect.any(String) as string })
  keep('operations', 'getConfigurationsStatus', {
    reply: {
      state: 'Configured',
      uid: stopUid,
      noProxy: '.plant.example,localhost,127.0.0.0/8,::1,192.0.2.0/24,.svc,.cluster.local',
    },
  })
  const userData = { tags: { hall: 'B' }, network: { noProxy: '.plant.example' } }
  const createdData = await ask('POST', `${hostPath}/userdata`, userData, admin)
  expect(createdData.statusCode).toBe(201)
  keep('operations', 'createUserData', { request: userData, reply: { uid: stopUid } })
  expect((await ask('PUT', `${hostPath}/userdata`, userData, admin)).statusCode).toBe(204)
  keep('operations', 'updateUserData', { request: userData })
  const shownData = await ask('GET', `${hostPath}/userdata`)
  // The name of the machine of the test.
  keep('operations', 'getUserData', { reply: { ...shownData.json<object>(), hostName: 'edge-1' } })
  const networkPath = '/v1/edge-mgmt/network'
  await succeed('listNetworkInterfaces', 'GET', `${networkPath}/interfaces`)
  await succeed('getNetworkInterface', 'GET', `${networkPath}/interfaces/eth1`)
  await succeed('listBonds', 'GET', `${networkPath}/bonds`)
  await succeed('getBond', 'GET', `${networkPath}/bonds/bond0`)
  await succeed('listVlans', 'GET', `${networkPath}/vlans`)
  await succeed('getVlan', 'GET', `${networkPath}/vlans/bond0.7`)
  await succeed('listBridges', 'GET', `${networkPath}/bridges`)
  await succeed('getBridge', 'GET', `${networkPath}/bridges/br1`)
  await succeed('getNetworkConfigOptions', 'GET', `${networkPath}/config-options`)
  await succeed('getManagementInterface', 'GET', `${networkPath}/management-interface`)
  await succeed(
    'setManagementInterface',
    'PUT',
    `${networkPath}/management-interface`,
    { name: 'br1' },
    admin,
  )
  const address = { type: 'static', ip: '192.0.2.9', subnet: '255.255.255.0', gateway: '192.0.2.1' }
  const nicPath = `${networkPath}/interfaces/eth0/config`
  const judged = await ask('PUT', `${nicPath}?dryRun=true`, address, admin)
  expect(judged.json()).toMatchObject({ problems: [] })
  for (const [name, request] of [
    ['updateNetworkInterface', address],
    ['createBond', { members: ['eth1', 'eth2'], mode: 'active-backup', type: 'dhcp' }],
    ['putBond', { members: ['eth1'], mode: 'active-backup', type: 'none' }],
    ['createVlan', { parentName: 'eth0', parentType: 'nic', vlanID: '7', type: 'dhcp' }],
    ['putVlan', { parentName: 'eth0', parentType: 'nic', vlanID: '7', type: 'dhcp' }],
    ['createBridge', { name: 'br2', members: ['eth1'], type: 'none' }],
    ['putBridge', { name: 'br1', members: ['eth2'], type: 'dhcp' }],
    ['deleteBond', undefined],
    ['deleteVlan', undefined],
    ['deleteBridge', undefined],
  ] as const)
    keep('operations', name, {
      ...(request === undefined ? {} : { request }),
      replies: {
        200: judged.json<unknown>(),
        202: {
          message: `${triedChangeOfNetwork.summary}: it is taken back in 60 seconds unless it is confirmed`,
          uid: triedChangeOfNetwork.uid,
        },
      },
    })
  keep('operations', 'listNetworkChanges', { reply: { items: [triedChangeOfNetwork] } })
  keep('operations', 'getNetworkChange', { reply: triedChangeOfNetwork })
  keep('operations', 'confirmNetworkChange', { reply: confirmedChange })
  keep('operations', 'revertNetworkChange', {
    reply: { ...triedChangeOfNetwork, state: 'reverting', reason: 'asked' },
  })
  const download = { path: `${hostPath}/audits/download` }
  await succeed('createTicket', 'POST', `${hostPath}/tickets`, download, admin)
  await succeed('listAudits', 'GET', `${hostPath}/audits?limit=2`, undefined, admin)
  await succeed('getAuditFilters', 'GET', `${hostPath}/audits/filters`, undefined, admin)
  await succeed('verifyAudits', 'GET', `${hostPath}/audits/verify`, undefined, admin)
  const upload = async (content: Buffer) => {
    const signature = createSign('sha256').update(content).sign(privateKey)
    const file = { name: 'uploadFile', fileName: 'factory.tgz', content }
    const { type, body } = form(file, { name: 'signature', content: signature })
    const reply = await ask('POST', uploadPath, body, { ...admin, 'content-type': type })
    expect(reply.statusCode, reply.body).toBe(201)
    return reply.json<{ uploadPath: string }>()
  }
  const show = (slot: string) => ['GET', `${archivePath}/${slot}/details`, undefined, admin] as const
  const { uploadPath: archiveUploadPath } = await upload(definitionArchive({ variables, values }))
  const shown = await succeed('getOverriddenArchiveDetails', ...show('overridden'))
  cluster.running = shown.json<ClusterConfigArchiveDetails>().clusterProfileDetails
  keep('operations', 'uploadClusterConfig', {
    reply: await upload(definitionArchive({ version: '1.1.0', variables, values })),
  })
  await succeed('getUpdateArchiveDetails', ...show('update'))
  await succeed('rejectArchiveUpdate', 'DELETE', `${archivePath}/update`, undefined, admin)
  await succeed('getEmbeddedArchiveDetails', ...show('embedded'))
  const given = [{ name: 'replicas', profileUid: 'u1', value: 'two' }]
  await succeed(
    'validateProfileVariables',
    'POST',
    validatePath,
    { archiveUploadPath, variables: given },
    admin,
  )
  await succeed('getContentSigningKey', 'GET', keyPath)
  const events = await succeed('listClusterEvents', 'GET', '/v1/edge-mgmt/cluster/events')
  keep('operations', 'listClusterEvents', {
    reply: {
      ...events.json(),
      items: clusterEvents,
      listmeta: { continue: '', count: 2, limit: 2, offset: 2 },
      kubernetes: { state: 'read' },
    },
  })
  const lifecycle = await succeed('getLifecycleEvents', 'GET', '/v1/edge-mgmt/events/lifecycle')
  const condition = {
    ...{ type: 'StepsSucceed', status: 'False', reason: 'StepFailed', message: clusterEvents[0]?.message },
    ...{ lastTransitionTime: '2026-01-31T08:00:05.000Z', lastProbeTime: '2026-01-31T08:00:05.000Z' },
  }
  const { expectedOrder } = lifecycle.json<LifecycleEvents>()
  keep('operations', 'getLifecycleEvents', {
    reply: { clusterEvents: [condition], edgeHostEvents: [], expectedOrder: expectedOrder.slice(0, 2) },
  })
  await succeed('listErrorLogs', 'GET', `${hostPath}/error-logs?logCount=1`, undefined, admin)
  keep('operations', 'listErrorLogs', { reply: { items: [errorLog] } })
  const bundlePath = `${contentPath}/bundles/${bundleUid}`
  await succeed('listBundles', 'GET', `${contentPath}/bundles`)
  await succeed('getBundle', 'GET', bundlePath)
  await succeed('listBundleEntries', 'GET', `${bundlePath}/entries`)
  const images = await succeed('listImages', 'GET', `${contentPath}/images`)
  expect(Object.keys(images.json())).toEqual(Object.keys(hostImages))
  keep('operations', 'listImages', { reply: hostImages })
  const usage = await succeed('getContentUsage', 'GET', `${contentPath}/usage`)
  expect(Object.keys(usage.json())).toEqual(Object.keys(contentUsage))
  expect(Object.keys(usage.json<typeof contentUsage>().fileSystem)).toEqual(
    Object.keys(contentUsage.fileSystem),
  )
  keep('operations', 'getContentUsage', { reply: contentUsage })
  await succeed('getRegistryContentDetails', 'GET', `${registryPath}/content/details`)
  await succeed('getRegistryContentSyncStatus', 'GET', `${registryPath}/content/sync-status/details`)
  // A test has another port, another password and another disk.
  const registry = (await ask('GET', `${contentPath}/registry`)).json<typeof contentRegistry>()
  expect({ ...registry, port: 5081, isListening: true }).toEqual(contentRegistry)
  keep('operations', 'getContentRegistry', { reply: contentRegistry })
  keep('operations', 'getContentRegistryPassword', {
    reply: { username: 'edgehostd', password: 'u7vS3Jm0Xy9dQk2ZfWn4Lr8TbHc6PaGe1MoViYsUtEo' },
  })
  const health = await ask('GET', `${registryPath}/health`)
  expect(Object.keys(health.json())).toEqual(Object.keys(registryHealth))
  keep('operations', 'getRegistryHealth', { reply: registryHealth })
  await succeed('getUploadedContentDetails', 'GET', `${hostPath}/uploaded-content/details`)
  await succeed('deleteBundle', 'DELETE', `${bundlePath}?dryRun=true`, undefined, admin)
  const content = contentClient(edge, Token.Authorization)
  const signed = (bytes: Buffer) => ({
    ...{ name: 'signature', fileName: 'signature' },
    content: createSign('sha256').update(bytes).sign(privateKey),
  })
  const archive = layoutTar(imageLayout(['file'], 'registry.example/shop/app:1.4.2'))
  keep('operations', 'uploadContent', { reply: (await content.sendFile(archive, signed(archive))).json() })
  const layout = imageLayout(['blobs'], 'registry.example/shop/app:1.5.0')
  const begun = await content.begin(
    layout.indexFile(),
    { name: 'name', content: 'shop-1.5.0' },
    signed(layout.indexFile()),
  )
  keep('operations', 'beginContentUpload', { reply: begun.json() })
  const { uid } = begun.json<{ uid: string }>()
  await succeed('listContentUploads', 'GET', contentUploadsPath)
  await succeed('getContentUpload', 'GET', `${contentUploadsPath}/${uid}`)
  await content.sendAll(uid, layout)
  await succeed(
    'publishContentUpload',
    'POST',
    `${contentUploadsPath}/${uid}/actions/publish`,
    undefined,
    admin,
  )
  plantCluster(edge)
  const clusterPath = '/v1/edge-mgmt/cluster'
  const created = { uid, problems: [warning] }
  const tried = { isPossible: true, problems: [warning], plan: [plannedStep], needs: [neededImage] }
  keep('operations', 'createCluster', { request: postedCluster, replies: { 200: tried, 201: created } })
  for (const [operation, request] of Object.entries({
    replaceCluster: postedCluster,
    replaceNamedCluster: postedCluster,
    replaceClusterProfiles: { spec: { archiveUploadPath: postedCluster.spec?.archiveUploadPath } },
    replaceClusterSettings: { ntpServers: ['ntp.example'], sshKeys: [] },
    patchCluster: { spec: { profileVariables: [{ name: 'replicas', value: '3' }] } },
    patchNamedCluster: {
      clusterConfigPatches: [{ op: 'replace', path: '/spec/profileVariables/0/value', value: '3' }],
    },
    rollBackCluster: { revision: 2 },
  }))
    keep('operations', operation, { request, replies: { 200: triedChange } })
  await succeed('listClusterRevisions', 'GET', `${clusterPath}/revisions`)
  await succeed('getCluster', 'GET', clusterPath, undefined, admin)
  const details = await succeed('getClusterDetails', 'GET', `${clusterPath}/details`)
  expect(Object.keys(details.json())).toEqual(Object.keys(runningCluster))
  expect(Object.keys(details.json<typeof runningCluster>().status)).toEqual(
    Object.keys(runningCluster.status),
  )
  keep('operations', 'getClusterDetails', { reply: runningCluster })
  const applications = await succeed('getClusterApplications', 'GET', `${clusterPath}/applications`)
  expect(Object.keys(applications.json())).toEqual(Object.keys(runningApplications))
  keep('operations', 'getClusterApplications', { reply: runningApplications })
  const certificates = await succeed('getClusterCertificates', 'GET', `${clusterPath}/certificates`)
  expect(Object.keys(shownCertificates)).toEqual(expect.arrayContaining(Object.keys(certificates.json())))
  keep('operations', 'getClusterCertificates', { reply: shownCertificates })
  keep('operations', 'renewClusterCertificates', { reply: acceptedRenewal })
  keep('operations', 'getPodLogs', { reply: shownPodLogs })
  keep('operations', 'updateCurrentUser', { request: { sshKeys: [publicKeys.ed25519] } })
  for (const [name, example] of Object.entries(diagnosisExamples)) keep('operations', name, example)
  await succeed('listClusterNodes', 'GET', '/v1/edge-mgmt/clusters/current/nodes')
  await succeed('listMachinePools', 'GET', '/v1/edge-mgmt/clusters/current/machinepools')
  await fail(400, 'POST', loginPath, { username: 'alice' })
  await fail(401, 'GET', currentPath, undefined, {})
  await fail(403, 'POST', logoutPath, undefined, { cookie: `Authorization=${access}` })
  await fail(404, 'DELETE', `${sessionsPath}/f3a9c1d2-7b84-4c0e-9a51-0d8e6b2f7c13`)
  await fail(413, 'POST', loginPath, { username: 'x'.repeat(70_000), password: 'x' })
  await fail(414, 'DELETE', `${sessionsPath}/${'x'.repeat(300)}`)
  await fail(415, 'POST', loginPath, 'username=alice', {
    'content-type': 'application/x-www-form-urlencoded',
  })
  await ask('POST', loginPath, { username: 'bobby', password: 'wrong' })
  await fail(429, 'POST', loginPath, { username: 'bobby', password: 'wrong' })
  edge.host.pam = 'module-unknown'
  await fail(500, 'POST', loginPath, { username: 'alice', password: 'alice pass' })
  await succeed('logout', 'POST', logoutPath)
  await edge.stop()

  await expect(`${JSON.stringify(settle(examples), null, 2)}\n`).toMatchFileSnapshot(
    '../../docs/examples.json',
  )
})

/** Replaces values that differ in each run by constant ones. */
function settle(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner: unknown) => {
    // The size of an upload; sizes of hardware are larger.
    if (key === 'sizeBytes' && inner !== 0 && Number(inner) < 1_000_000) return 48_231
    if (typeof inner !== 'string' || inner === '') return inner
    if (key.endsWith('ploadPath')) return inner.includes('/bundles/') ? bundlePath : definitionPath
    if (key === 'hostName' && inner === hostname()) return 'edge-1'
    if (key === 'uid' && !['alice', 'bob'].includes(inner)) return '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'
    if (['uploadedAt', 'startedAt', 'lastActivityAt'].includes(key)) return '2026-01-31T09:45:00.000Z'
    if (key.endsWith('Timestamp') && !inner.startsWith('2026-01-31'))
      return times[key] ?? '2026-01-31T09:45:00.000Z'
    return settled[key] ?? inner
  })
}

const definitionPath = '/var/lib/edgehostd/definitions/0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'

const bundlePath = '/var/lib/edgehostd/content/bundles/0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44.jsonl'

const settled: Readonly<Record<string, string>> = {
  Authorization: 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2lnbmF0dXJl',
  RefreshToken: 'cmVmcmVzaC10b2tlbg',
  refreshToken: 'cmVmcmVzaC10b2tlbg',
  continue: 'WzIsM10.c2lnbmF0dXJl',
  ticket: 'b25lLXRpbWUtdGlja2V0LWZvci1hLWRvd25sb2FkLi4',
  downloadPath:
    '/v1/edge-mgmt/edgehosts/current/audits/download?ticket=b25lLXRpbWUtdGlja2V0LWZvci1hLWRvd25sb2FkLi4',
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  key: 'LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0=',
  hash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
}

const times: Readonly<Record<string, string>> = {
  creationTimestamp: '2026-01-31T08:00:00.000Z',
  lastRenewalTimestamp: '2026-01-31T09:30:00.000Z',
  expirationTimestamp: '2026-01-31T11:30:00.000Z',
}
