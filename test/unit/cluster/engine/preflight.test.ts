import { expect, it } from 'vitest'
import {
  createEnginePreflight,
  type EnginePreflightOptions,
} from '../../../../src/cluster/engine/preflight.ts'
import type { DesiredState, DesiredKubernetes } from '../../../../src/cluster/desired/desired-state.ts'

const wantedOf = (kubernetes: Partial<DesiredKubernetes>): DesiredState => ({
  ...{ uid: 'c', name: 'plant', generation: 1, folder: '/c', packs: [] },
  settings: { ntpServers: [], sshKeys: [] },
  kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: '', stages: [], ...kubernetes },
  node: {
    ...{ name: 'edge-1', address: '192.0.2.7', endpoint: '192.0.2.7', poolName: 'control' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
  },
})

async function check(kubernetes: Partial<DesiredKubernetes>, change: Partial<EnginePreflightOptions> = {}) {
  const preflight = createEnginePreflight({
    programs: {
      find: async (name) => ({ kind: 'host', path: `/usr/bin/${name}` }),
      place: async (name) => `/usr/bin/${name}`,
    },
    files: { make: async () => 'text', validate: async () => undefined },
    registryFiles: () => ({ problem: undefined }),
    containerdVersion: async () => '1.6.20',
    exists: () => true,
    ...change,
  })
  const found = await preflight(wantedOf(kubernetes), new AbortController().signal)
  return found.map(({ code, severity, message, pack }) => {
    expect(pack).toBe('edge-k8s')
    return `${severity} ${code}: ${message}`
  })
}

it('a pack for which everything is here has no problem', async () => {
  expect(await check({ version: '1.34.4' })).toEqual([])
})

it('all problems are found at once', async () => {
  const needsFile = 'clusterConfiguration: {apiServer: {extraArgs: {audit-policy-file: /etc/audit.yaml}}}'
  const found = await check(
    { version: '1.30.2', config: needsFile, stages: ['stages.initramfs: /etc/audit.yaml'] },
    {
      registryFiles: () => ({ problem: 'the registry is off' }),
      programs: {
        find: async (name) => ({ kind: 'missing', code: 'ProgramMissing', reason: `no ${name}` }),
        place: () => Promise.reject(new Error('never')),
      },
      exists: () => false,
    },
  )
  expect(found).toEqual([
    'error KubernetesVersionUnsupported: Kubernetes 1.30.2 is not supported; take a pack of version 1.31 or later',
    'error RegistryUnusable: the registry is off',
    'error ProgramMissing: no kubeadm',
    'error ProgramMissing: no kubelet',
    'error ProgramMissing: no kubectl',
    'error HostFileMissing: the API server reads /etc/audit.yaml (--audit-policy-file in cluster.config of the pack edge-k8s), and this host has no such file; put it there, since stages of packs are not run',
    'warning StagesNotRun: stages of packs are not run; make what the cluster needs of it by hand: stages.initramfs: /etc/audit.yaml',
  ])
})

it('a configuration that kubeadm refuses is an error with its reason', async () => {
  const refuses = { make: async () => 'text', validate: () => Promise.reject(new Error('unknown field "a"')) }
  expect(await check({}, { files: refuses })).toEqual([
    'error KubernetesConfigInvalid: cluster.config of the pack edge-k8s: unknown field "a"',
  ])
  expect(await check({ config: '- a' })).toEqual([
    'error KubernetesConfigInvalid: cluster.config of the pack edge-k8s: it is not a map of YAML',
  ])
})

it.each(['1.31.0', '1.35.1', '1.40.0-rc.1'])('Kubernetes %s is supported', async (version) => {
  for (const containerd of ['2.1.0', undefined])
    expect(await check({ version }, { containerdVersion: async () => containerd })).toEqual([])
})

it('containerd 1 is a warning from Kubernetes 1.36 on', async () => {
  expect(await check({ version: '1.35.1' })).toEqual([])
  expect(await check({ version: '1.36.0' })).toEqual([
    'warning ContainerRuntimeOutdated: Kubernetes 1.36.0 does not support containerd 1.6.20; install containerd 2',
  ])
})

it.each(['1.30.14', '2.0.0', 'latest', ''])('Kubernetes %j is not supported', async (version) => {
  expect((await check({ version }))[0]).toContain('KubernetesVersionUnsupported')
})
