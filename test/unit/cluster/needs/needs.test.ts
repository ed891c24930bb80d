import { describe, expect, it } from 'vitest'
import { kubernetesImages } from '../../../../src/cluster/needs/kubernetes-images.ts'
import { listNeeds, originOf, type PackNeeds } from '../../../../src/cluster/needs/needs.ts'
import { neededImages } from '../../../../src/cluster/prepare/manifests.ts'
import { readPlain } from '../../../../src/definition/rules/plain-values.ts'

const pack = (id: string, needs: Partial<PackNeeds>): PackNeeds => ({
  ...{ pack: `u1/${id}`, images: [], charts: [], usesHelm: false },
  ...needs,
})

const lines = (input: Parameters<typeof listNeeds>[0]) =>
  listNeeds(input).map(
    (need) =>
      `${need.kind} ${need.name}${need.version === undefined ? '' : ` ${need.version}`} (${originOf(need)})${need.isRequired ? '' : ' optional'}${need.reason === undefined ? '' : `: ${need.reason}`}`,
  )

describe('the content that a cluster needs', () => {
  it('is the images, charts and programs of all packs and of Kubernetes, each once with all that need it', () => {
    const packs = [
      pack('web', { images: [{ image: 'a:1' }, { image: 'b:1' }], charts: ['web:1.2.0'], usesHelm: true }),
      pack('till', { images: [{ image: 'b:1' }], charts: ['web:1.2.0'] }),
    ]
    const images = [
      { image: 'registry.k8s.io/pause:3.10', isTagKnown: true },
      { image: 'b:1', isTagKnown: true },
    ]
    expect(lines({ packs, kubernetes: { version: '1.34.4', images } })).toEqual([
      'image registry.k8s.io/pause:3.10 (Kubernetes): containerd starts it for every pod; no pod names it',
      'image b:1 (Kubernetes, web, till)',
      'image a:1 (web)',
      'chart web 1.2.0 (web, till)',
      'program kubeadm 1.34.4 (Kubernetes)',
      'program kubelet 1.34.4 (Kubernetes)',
      'program kubectl 1.34.4 (Kubernetes)',
      'program helm (web)',
      'program etcdctl (Kubernetes) optional: for administrators; the cluster runs without it',
    ])
  })

  it('has a reason where nothing needs it by itself, unless another pack does', () => {
    const images = [
      { image: 'hook:1', hook: 'post-delete' },
      { image: 'both:1', hook: 'pre-install' },
      { image: 'arm:1', onlyOn: ['arm64'] },
      { image: 'any:1', onlyOn: ['arm64', 'amd64'] },
      { image: 'windows:1', onlyOn: ['windows'] },
      { image: 'guess:1', guess: { isTagKnown: true } },
      { image: 'guess', guess: { isTagKnown: false } },
    ]
    const packs = [pack('web', { images }), pack('till', { images: [{ image: 'both:1' }] })]
    const found = (architecture?: string) =>
      lines({ packs, kubernetes: undefined, ...(architecture === undefined ? {} : { architecture }) })
    expect(found('amd64')).toEqual([
      'image hook:1 (web): only a hook of a chart uses it: post-delete',
      'image both:1 (web, till)',
      'image arm:1 (web) optional: only on nodes with arm64',
      'image any:1 (web)',
      'image windows:1 (web) optional: only on nodes with windows',
      'image guess:1 (web) optional: guessed from values, since its chart was not rendered',
      'image guess (web) optional: guessed from values, since its chart was not rendered; tag not known',
    ])
    expect(found()).toContain('image arm:1 (web): only on nodes with arm64')
  })

  it('names helm as optional where no pack has a chart or a template', () => {
    expect(lines({ packs: [pack('web', {})], kubernetes: { version: '1.34.4', images: [] } })).toContain(
      'program helm (Kubernetes) optional: no pack has a chart or a template',
    )
  })
})

describe('the images of Kubernetes without its kubeadm', () => {
  const names = (version: string, config = '') =>
    kubernetesImages({ version, config }).map(({ image }) => image)

  it('change within a minor version', () => {
    expect(names('1.34.1')).toContain('registry.k8s.io/etcd:3.6.4-0')
    expect(names('1.34.2')).toContain('registry.k8s.io/etcd:3.6.5-0')
  })

  it('of a version that is not in the table have no tags but their own, and say so', () => {
    for (const version of ['1.34.99', '1.99.0', '1.34.4-rc.0']) {
      const images = kubernetesImages({ version, config: '' })
      expect(images.filter(({ isTagKnown }) => !isTagKnown).map(({ image }) => image)).toEqual([
        ...['registry.k8s.io/coredns/coredns', 'registry.k8s.io/pause', 'registry.k8s.io/etcd'],
      ])
      expect(images[0]).toEqual({ image: `registry.k8s.io/kube-apiserver:v${version}`, isTagKnown: true })
      expect(lines({ packs: [], kubernetes: { version, images } })).toContain(
        'image registry.k8s.io/etcd (Kubernetes) optional: tag not known; add its kubeadm',
      )
    }
  })

  it('have the repositories and tags of the Kubernetes pack', () => {
    const config = `clusterConfiguration:
  imageRepository: mirror.example/k8s
  dns: {imageTag: v1.99.0}
  etcd: {local: {imageRepository: other.example/db}}
`
    expect(names('1.34.4', config)).toEqual([
      'mirror.example/k8s/kube-apiserver:v1.34.4',
      'mirror.example/k8s/kube-controller-manager:v1.34.4',
      'mirror.example/k8s/kube-scheduler:v1.34.4',
      'mirror.example/k8s/kube-proxy:v1.34.4',
      'mirror.example/k8s/coredns:v1.99.0',
      'mirror.example/k8s/pause:3.10.1',
      'other.example/db/etcd:3.6.5-0',
    ])
  })

  it('leave out what the pack disables or has elsewhere; a text that is no YAML changes nothing', () => {
    const config =
      'clusterConfiguration: {proxy: {disabled: true}, dns: {disabled: true}, etcd: {external: {endpoints: [a]}}}'
    expect(names('1.34.4', config)).toEqual([
      ...['apiserver', 'controller-manager', 'scheduler'].map(
        (part) => `registry.k8s.io/kube-${part}:v1.34.4`,
      ),
      'registry.k8s.io/pause:3.10.1',
    ])
    expect(names('1.34.4', '{')).toEqual(names('1.34.4'))
  })
})

describe('images of workloads that are bound to some nodes', () => {
  const images = (text: string) => neededImages(readPlain(text).documents)
  const daemonSet = (spec: string) => `kind: DaemonSet
spec: {template: {spec: {${spec}, containers: [{image: "a:1"}]}}}
`

  it('have the architectures of a node selector or of each term of an affinity', () => {
    expect(images(daemonSet('nodeSelector: {kubernetes.io/arch: arm64, kubernetes.io/os: linux}'))).toEqual([
      { image: 'a:1', onlyOn: ['arm64'] },
    ])
    const terms = (values: string) =>
      `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [${values}]}}}`
    const term = (key: string, value: string) =>
      `{matchExpressions: [{key: ${key}, operator: In, values: [${value}]}]}`
    const arch = 'kubernetes.io/arch'
    expect(images(daemonSet(terms(`${term(arch, 'arm64')}, ${term(arch, 's390x')}`)))).toEqual([
      { image: 'a:1', onlyOn: ['arm64', 's390x'] },
    ])
    expect(images(daemonSet(terms(`${term(arch, 'arm64')}, ${term('zone', 'a')}`)))).toEqual([
      { image: 'a:1' },
    ])
  })

  it('are needed everywhere where another workload has them too', () => {
    const text = `${daemonSet('nodeSelector: {kubernetes.io/os: windows}')}---\n${daemonSet('hostNetwork: true')}`
    expect(images(text)).toEqual([{ image: 'a:1' }])
  })
})
