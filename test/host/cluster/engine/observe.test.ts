import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { noteRenewal } from '../../../../src/cluster/engine/renew.ts'
import { noCertificates, type SeenCertificates } from '../../../../src/cluster/engine/certificates.ts'
import { writeInitialisation } from '../../../../src/cluster/engine/notes.ts'
import { certifiedName } from '../../../../src/cluster/engine/node-name.ts'
import { createObserver } from '../../../../src/cluster/engine/observe.ts'
import { clusterPaths, type ClusterPaths } from '../../../../src/cluster/engine/paths.ts'
import {
  configurationDigest,
  noteConfigured,
  readConfigured,
  writeConfigured,
} from '../../../../src/cluster/engine/configured.ts'
import { kubeletUnit } from '../../../../src/cluster/engine/units.ts'
import type { DesiredState } from '../../../../src/cluster/desired/desired-state.ts'
import { KubernetesError, type KubernetesObject } from '../../../../src/kubernetes/client.ts'

let home: string
let paths: ClusterPaths
/** Given the kind and the name of an object. */
let get: (asked: string) => Promise<KubernetesObject | undefined>
let pods: readonly KubernetesObject[]
let warnings: readonly KubernetesObject[] = []
let registry: Map<string, string>
let certificates: SeenCertificates
const now = Date.parse('2026-11-23T18:00:00Z')
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'edgehostd-observe-'))
  paths = clusterPaths(home)
  get = () => Promise.reject(new KubernetesError(0, 'Unreachable', 'refused'))
  pods = []
  warnings = []
  registry = new Map()
  certificates = noCertificates
})
afterEach(() => rm(home, { recursive: true }))

const wanted: DesiredState = {
  ...{ uid: 'c1', name: 'plant', generation: 1, folder: '/c', packs: [] },
  settings: { ntpServers: [], sshKeys: [] },
  kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: '', stages: [] },
  node: {
    ...{ name: 'edge-1', address: '192.0.2.7', endpoint: '192.0.2.7', poolName: 'control' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
  },
}
const shown = `Id=edgehostd-containerd.service\nLoadState=loaded\nActiveState=active\n\nId=kubelet.service\nLoadState=loaded\nActiveState=failed\n`

const observe = (signal = new AbortController().signal, config = '') =>
  createObserver({
    paths,
    runner: { run: async () => ({ exitCode: 0, stdout: shown, stderr: '' }) },
    client: {
      get: ({ kind }, { name }) => get(`${kind} ${name}`),
      list: async ({ kind }) => (kind === 'Pod' ? pods : warnings),
    },
    registryFiles: () => ({ files: registry, problem: undefined }),
    programs: { hasCurrent: async () => true },
    digestOf: () => 'digest-1',
    ...{ certificates: async () => certificates, now: () => now },
    ...{ adminConfig: join(home, 'admin.conf'), kubeletUnit: join(home, 'kubelet.service') },
    kubeletFlags: join(home, 'kubeadm-flags.env'),
  })({ ...wanted, kubernetes: { ...wanted.kubernetes, config } }, signal)

async function complete() {
  await mkdir(paths.kubeadm, { recursive: true })
  await writeInitialisation(paths, { uid: 'c1', state: 'done' })
  await writeFile(join(home, 'admin.conf'), '')
}
const nodeWith = (conditions: readonly object[]) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'edge-1' },
  status: { conditions },
})

it('an empty host has units only', async () => {
  expect(await observe()).toEqual({
    isPresent: false,
    isPrepared: false,
    damaged: [],
    containerd: 'running',
    kubelet: 'stopped',
    controlPlane: 'absent',
    version: '',
    isConfigured: true,
    isRenewalDue: false,
    isRenewalOverdue: false,
    endingCertificates: [],
    endingAuthorities: [],
    api: 'absent',
  })
})

it('a control plane has the configuration that is wanted until another one is, or its application was begun', async () => {
  await complete()
  expect(await observe()).toMatchObject({ isConfigured: false })
  await noteConfigured(paths, configurationDigest(wanted), wanted.node)
  expect(await observe()).toMatchObject({ isConfigured: true })
  const noted = await readConfigured(paths)
  await writeConfigured(paths, { ...noted, digest: configurationDigest({ ...wanted, name: 'other' }) })
  expect(await observe()).toMatchObject({ isConfigured: false })
  await writeConfigured(paths, { ...noted, digest: '' })
  expect(await observe()).toMatchObject({ isConfigured: false })
})

it('a file of kubeadm that is another one than it was noted is put right', async () => {
  await complete()
  await noteConfigured(paths, configurationDigest(wanted), wanted.node)
  const noted = await readConfigured(paths)
  const files = { ...noted.files, '/etc/kubernetes/manifests/etcd.yaml': '0'.repeat(64) }
  await writeConfigured(paths, { ...noted, files })
  expect(await observe()).toMatchObject({ isConfigured: false })
})

it('a damaged note of the configuration has it applied again', async () => {
  await complete()
  await writeFile(paths.configured, '{')
  expect(await observe()).toMatchObject({ isConfigured: false, controlPlane: 'complete' })
})

it('an initialisation that began and did not end, or that of another cluster, is partial', async () => {
  await mkdir(paths.kubeadm, { recursive: true })
  await writeInitialisation(paths, { uid: 'c1', state: 'begun' })
  expect(await observe()).toMatchObject({ isPresent: true, controlPlane: 'partial', api: 'absent' })
  await writeInitialisation(paths, { uid: 'c0', state: 'done' })
  expect(await observe()).toMatchObject({ controlPlane: 'partial', api: 'absent' })
})

it('an initialisation that ended before the node had its labels continues, and is not cleared', async () => {
  await mkdir(paths.kubeadm, { recursive: true })
  await writeInitialisation(paths, { uid: 'c1', state: 'initialised' })
  expect(await observe()).toMatchObject({ controlPlane: 'absent', api: 'absent' })
})

it.each(['{"uid": "c1"', '{"uid": "c1", "state": "over"}', 'null', ''])(
  'a note of the initialisation that reads %j is told, and nothing is set up again or cleared',
  async (text) => {
    await complete()
    await writeFile(paths.initialisation, text)
    expect(await observe()).toMatchObject({
      controlPlane: 'complete',
      api: 'silent',
      damaged: [
        expect.stringMatching(/initialisation\.json cannot be read; the control plane is taken to be set up/),
      ],
    })
  },
)

it('a damaged record of the CNI plugins is told', async () => {
  await mkdir(paths.kubeadm, { recursive: true })
  await writeFile(paths.cniRecord, '{')
  expect((await observe()).damaged).toEqual([expect.stringContaining('cni-record.json cannot be read; ')])
})

it('an API server that does not answer is silent', async () => {
  await complete()
  expect(await observe()).toMatchObject({ controlPlane: 'complete', api: 'silent' })
  expect(await observe()).not.toHaveProperty('node')
})

it('a node is ready by its condition, and otherwise says why', async () => {
  await complete()
  get = async () => nodeWith([{ type: 'Ready', status: 'True', message: 'kubelet is ready' }])
  expect(await observe()).toMatchObject({ api: 'answers', node: { name: 'edge-1', isReady: true } })
  get = async () => nodeWith([{ type: 'Ready', status: 'Unknown', message: 'no status' }])
  expect(await observe()).toMatchObject({ node: { isReady: false, message: 'no status' } })
  get = async () => nodeWith([])
  expect(await observe()).toMatchObject({
    node: { isReady: false, message: 'the kubelet has not reported yet' },
  })
  get = async () => undefined
  expect(await observe()).not.toHaveProperty('node')
  expect(await observe()).toMatchObject({ api: 'answers' })
})

describe('CoreDNS and kube-proxy', () => {
  const ready = nodeWith([{ type: 'Ready', status: 'True' }])
  const dns = (availableReplicas: number) => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    spec: { replicas: 2, selector: { matchLabels: { 'k8s-app': 'kube-dns' } } },
    metadata: { name: 'coredns', namespace: 'kube-system', generation: 1 },
    status: {
      ...{ observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: availableReplicas },
      ...{ availableReplicas, conditions: [{ type: 'Available', status: 'True' }] },
    },
  })
  const proxy = {
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', spec: {} },
    metadata: { name: 'kube-proxy', namespace: 'kube-system', generation: 1 },
    status: {
      ...{ observedGeneration: 1, desiredNumberScheduled: 1, currentNumberScheduled: 1 },
      ...{ updatedNumberScheduled: 1, numberAvailable: 1, numberReady: 1 },
    },
  }
  const cluster = (objects: Readonly<Record<string, KubernetesObject | undefined>>) => {
    get = async (asked) => ({ 'Node edge-1': ready, ...objects })[asked]
  }
  beforeEach(complete)

  it('are no trouble while they run', async () => {
    cluster({ 'Deployment coredns': dns(2), 'DaemonSet kube-proxy': proxy })
    expect(await observe()).not.toHaveProperty('addonTrouble')
  })

  it('are named with why a pod of them crashes', async () => {
    cluster({ 'Deployment coredns': dns(0), 'DaemonSet kube-proxy': proxy })
    const lastState = { terminated: { exitCode: 1, message: 'plugin/forward: no nameservers found' } }
    const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } }
    pods = [
      {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'coredns-1' } },
        status: { containerStatuses: [{ name: 'coredns', state, lastState }] },
      },
    ]
    const { addonTrouble } = await observe()
    expect(addonTrouble).toMatch(/^Deployment kube-system\/coredns: .*available/)
    expect(addonTrouble).toContain('pod coredns-1: container coredns: CrashLoopBackOff')
    expect(await observe()).toMatchObject({ troubles: [{ reason: 'Crashing', pod: 'coredns-1' }] })
  })

  it('have no trouble yet where a probe fails for the first seconds, as at every start', async () => {
    cluster({ 'Deployment coredns': dns(0), 'DaemonSet kube-proxy': proxy })
    const startedAt = '2026-01-31T08:00:00Z'
    pods = [
      {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'coredns-1' } },
        status: { containerStatuses: [{ name: 'coredns', state: { running: { startedAt } } }] },
      },
    ]
    const failingSince = (firstTimestamp: string) => [
      {
        ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, reason: 'Unhealthy' },
        involvedObject: { kind: 'Pod', name: 'coredns-1', fieldPath: 'spec.containers{coredns}' },
        message: 'Readiness probe failed: HTTP probe failed with statuscode: 503',
        ...{ firstTimestamp, lastTimestamp: new Date().toISOString() },
      },
    ]
    warnings = failingSince(new Date().toISOString())
    expect(await observe()).not.toHaveProperty('troubles')
    warnings = failingSince(startedAt)
    expect(await observe()).toMatchObject({ troubles: [{ reason: 'ProbeFailing', container: 'coredns' }] })
  })

  it('are missed where kubeadm installs them, and only there', async () => {
    cluster({})
    expect(await observe()).toMatchObject({
      addonTrouble: 'Deployment kube-system/coredns is missing; DaemonSet kube-system/kube-proxy is missing',
    })
    const config =
      'initConfiguration: {skipPhases: [addon/kube-proxy]}\nclusterConfiguration: {dns: {disabled: true}}'
    expect(await observe(undefined, config)).not.toHaveProperty('addonTrouble')
  })

  it('of which the API server says nothing are no trouble', async () => {
    get = async (asked) => {
      if (asked === 'Node edge-1') return ready
      throw new KubernetesError(503, 'ServiceUnavailable', 'not now')
    }
    expect(await observe()).toMatchObject({ api: 'answers' })
    expect(await observe()).not.toHaveProperty('addonTrouble')
  })
})

it('a unit of the kubelet without the name of the node is one that follows the name of the host', async () => {
  await complete()
  expect(await observe()).not.toHaveProperty('followsHostName')
  await writeFile(join(home, 'kubelet.service'), 'ExecStart=kubelet $KUBELET_KUBEADM_ARGS\n')
  expect(await observe()).toMatchObject({ followsHostName: hostname().toLowerCase() })
  // As kubeadm writes it for a node that was made with a name of its own.
  const flags = 'KUBELET_KUBEADM_ARGS="--hostname-override=edge-1 --node-ip=192.0.2.7"\n'
  await writeFile(join(home, 'kubeadm-flags.env'), flags)
  expect(await observe()).toMatchObject({ followsHostName: 'edge-1' })
  await writeFile(join(home, 'kubelet.service'), kubeletUnit(paths, 'edge-1'))
  expect(await observe()).not.toHaveProperty('followsHostName')
})

it('the name of the node is that of the certificate of the kubelet', async () => {
  const [key, pem, config] = ['key.pem', 'kubelet.pem', 'kubelet.conf'].map((name) => join(home, name)) as [
    string,
    string,
    string,
  ]
  execFileSync(
    'openssl',
    [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ],
      ...['-subj', '/O=system:nodes/CN=system:node:line-7', '-keyout', key, '-out', pem],
    ],
    { stdio: 'ignore' },
  )
  expect(await certifiedName({ config })).toBeUndefined()
  await writeFile(config, `users:\n- name: default-auth\n  user:\n    client-certificate: ${pem}\n`)
  expect(await certifiedName({ config })).toBe('line-7')
  const data = (await readFile(pem)).toString('base64')
  await writeFile(
    config,
    `users:\n- name: system:node:line-7\n  user:\n    client-certificate-data: ${data}\n`,
  )
  expect(await certifiedName({ config })).toBe('line-7')
})

it('a look that is ended says nothing of the API server', async () => {
  await complete()
  await expect(observe(AbortSignal.abort(new Error('stopping')))).rejects.toThrow('stopping')
})

it('a host is prepared until what the preparation depends on is another, or the password of the registry', async () => {
  const hosts = join(home, 'certs.d/_default/hosts.toml')
  registry.set(hosts, 'password one')
  await mkdir(dirname(hosts), { recursive: true })
  await writeFile(hosts, 'password one')
  await mkdir(paths.kubeadm, { recursive: true })
  await writeFile(paths.prepared, JSON.stringify({ digest: 'digest-1' }))
  expect(await observe()).toMatchObject({ isPrepared: true })
  registry.set(hosts, 'password two')
  expect(await observe()).toMatchObject({ isPrepared: false })
  // While the registry cannot say its password, old files stay.
  registry.clear()
  expect(await observe()).toMatchObject({ isPrepared: true })
  await writeFile(paths.prepared, JSON.stringify({ digest: 'digest-0' }))
  expect(await observe()).toMatchObject({ isPrepared: false })
})

describe('the certificates', () => {
  const hour = 3_600_000
  const apiserver = {
    ...{ name: 'apiserver', authority: 'ca', renewedBy: 'kubeadm' as const },
    ...{ issuedAt: now - 2 * hour, writtenAt: now - 2 * hour, expiresAt: now + hour + 1 },
  }

  it('have to be renewed when their time has come, and not before', async () => {
    await complete()
    certificates = { ...noCertificates, certificates: [apiserver] }
    expect(await observe()).toMatchObject({ isRenewalDue: false, isRenewalOverdue: false })
    certificates = { ...noCertificates, certificates: [{ ...apiserver, expiresAt: now + hour }] }
    expect(await observe()).toMatchObject({ isRenewalDue: true, isRenewalOverdue: false })
  })

  it('of a renewal that was cut off have to be renewed first, whatever their dates are', async () => {
    await complete()
    await mkdir(paths.renewal)
    await noteRenewal(paths, { phase: 'renewed', old: [], withKubelet: false })
    expect(await observe()).toMatchObject({ isRenewalDue: true, isRenewalOverdue: true })
  })

  it('that are here before the control plane is set up are not renewed', async () => {
    certificates = { ...noCertificates, certificates: [{ ...apiserver, expiresAt: now }] }
    expect(await observe()).toMatchObject({ controlPlane: 'absent', isRenewalDue: false })
  })
})
