import { describe, expect, it } from 'vitest'
import { type HostFacts, parseListening, parseSwaps } from '../../../../src/cluster/host/host-facts.ts'
import { judgeHost } from '../../../../src/cluster/host/judge-host.ts'
import { protectedSysctls } from '../../../../src/cluster/host/host-facts.ts'
import { kubernetesSettings } from '../../../../src/cluster/host/kubernetes-settings.ts'

const gibibyte = 2 ** 30
const good: HostFacts = {
  architecture: 'arm64',
  kernel: '6.1.0-18-amd64',
  cgroups: { version: 2, controllers: new Set(['cpu', 'cpuset', 'io', 'memory', 'pids']) },
  ports: new Set([22, 5080, 5081]),
  spaces: [
    {
      folder: '/var/lib/edgehostd',
      neededBytes: 2 * gibibyte,
      sizeBytes: 40 * gibibyte,
      freeBytes: 30 * gibibyte,
    },
  ],
  memoryBytes: 4 * gibibyte,
  cores: 4,
  clock: { now: Date.parse('2026-11-23T00:00:00Z'), isSynchronized: true },
  networks: {
    addresses: new Set(['127.0.0.1', '10.77.0.11']),
    routes: [
      {
        subnet: { address: '10.77.0.0', prefixLength: 24 },
        networkInterface: 'eth0',
        isConnected: true,
      },
      {
        subnet: { address: '192.168.0.0', prefixLength: 16 },
        networkInterface: 'eth0',
        isConnected: false,
      },
    ],
  },
  programs: new Set([
    ...['containerd', 'runc', 'ip', 'nft', 'conntrack', 'mount', 'losetup', 'socat', 'ethtool'],
  ]),
  cniPlugins: new Set(['bridge', 'loopback']),
  swaps: [],
  sysctls: new Map(Object.entries(protectedSysctls)),
  kubernetes: [],
  networkConfigs: [],
  droppingChains: [],
}

interface Case {
  readonly version?: string
  readonly config?: string
  readonly name?: string
}

const judge = (facts: Partial<HostFacts>, { version = '1.34.4', config = '', name = 'edge-1' }: Case = {}) =>
  judgeHost(
    { ...good, ...facts },
    {
      kubernetes: { pack: 'edge-k8s', version, config, stages: [] },
      node: {
        ...{ name, address: '10.77.0.11', endpoint: '10.77.0.11', poolName: 'control', labels: {} },
        ...{ taints: [], runsWorkloads: true },
      },
    },
    kubernetesSettings(config),
  )
const codes = (...args: Parameters<typeof judge>) =>
  judge(...args).map(({ code, severity }) => `${severity} ${code}`)
const ignoring = (check: string) =>
  `initConfiguration: {nodeRegistration: {ignorePreflightErrors: [${check}]}}`
const networking = (text: string) => `clusterConfiguration: {networking: {${text}}}`

it('a host with everything has no problems', () => {
  expect(judge({})).toEqual([])
})

it('all problems are reported at once', () => {
  const found = codes({
    ...{ architecture: '386', kernel: '4.4.0', memoryBytes: gibibyte, cores: 1, kubernetes: ['/x'] },
    ...{ ports: new Set([6443]), programs: new Set(), cniPlugins: new Set(), swaps: ['/dev/sda2'] },
  })
  expect(found).toEqual([
    'error ArchitectureUnsupported',
    'error KernelUnsupported',
    'error MemoryTooSmall',
    'error TooFewCores',
    'error HostProgramMissing',
    'warning HostProgramMissing',
    'error PortTaken',
    'error SwapEnabled',
    'error KubernetesPresent',
  ])
})

it('all missing programs are named at once, with one command for each way to install them', () => {
  const [error, warning] = judge({
    programs: new Set(['runc', 'ip', 'nft', 'mount', 'losetup', 'ethtool']),
    cniPlugins: new Set(),
  }).map(({ message }) => message)
  expect(error).toBe(
    'what a cluster needs of the operating system is missing on this host: containerd, conntrack, the CNI plugins; install it, with Debian: apt-get install ./edgehostd-kubernetes_*_all.deb, or: apt-get install containerd conntrack containernetworking-plugins',
  )
  expect(warning).toMatch(/missing on this host: socat; .* or: apt-get install socat$/)
})

// Read from the kubeadm programs of 1.33.13 and 1.34.4.
it.each([
  ['6.12.9', '1.34.4', true],
  ['5.15.0-100-generic', '1.34.4', true],
  ['5.14.0-427.el9', '1.34.4', false],
  ['4.19.0-27-amd64', '1.34.4', false],
  ['5.14.0-427.el9', '1.33.13', true],
  ['4.19.0-27-amd64', '1.33.13', true],
  ['4.18.0-553.el8', '1.33.13', false],
  ['4.18.0-553.el8', '1.31.9', true],
])('the kernel %s is taken by kubeadm %s: %s', (kernel, version, isTaken) => {
  expect(codes({ kernel }, { version })).toEqual(isTaken ? [] : ['error KernelUnsupported'])
})

it('what the pack has kubeadm ignore is a warning', () => {
  expect(codes({ kernel: '4.4.0' }, { config: ignoring('SystemVerification') })).toEqual([
    'warning KernelUnsupported',
  ])
  expect(codes({ memoryBytes: gibibyte, cores: 1 }, { config: ignoring('mem') })).toEqual([
    'warning MemoryTooSmall',
    'error TooFewCores',
  ])
  expect(codes({ memoryBytes: gibibyte, cores: 1 }, { config: ignoring('all') })).toEqual([
    'warning MemoryTooSmall',
    'warning TooFewCores',
  ])
})

describe('control groups', () => {
  const cgroups = { ...good.cgroups, version: 1 } as const

  it.each([
    ['1.34.4', '', 'warning'],
    ['1.35.0', '', 'error'],
    ['1.35.0', 'kubeletConfiguration: {failCgroupV1: false}', 'warning'],
    ['1.34.4', 'kubeletConfiguration: {failCgroupV1: true}', 'error'],
  ])('version 1 with Kubernetes %s and %j is: %s', (version, config, severity) => {
    expect(codes({ cgroups }, { version, config })).toEqual([`${severity} CgroupVersionOutdated`])
  })

  it('a missing memory controller, as on a Raspberry Pi, is named', () => {
    const [problem] = judge({ cgroups: { version: 2, controllers: new Set(['cpu', 'cpuset', 'pids']) } })
    expect(problem).toEqual({
      code: 'CgroupControllerMissing',
      severity: 'error',
      message:
        'the kernel of this host has no control group "memory"; enable it, for example by cgroup_enable=memory on the kernel\'s command line',
    })
  })
})

describe('networks', () => {
  it.each([
    ['podSubnet: 10.77.0.0/16', 'error', 'contains the address 10.77.0.11 of this host'],
    ['podSubnet: 10.244.0.0/16, serviceSubnet: 10.244.128.0/20', 'error', 'overlap; change one of them'],
    ['podSubnet: 192.168.128.0/17', 'warning', 'overlaps 192.168.0.0/16, to which this host has a route'],
  ])('%s: %s, %s', (text, severity, message) => {
    const found = judge({}, { config: networking(text) })
    expect(found).toMatchObject([{ code: 'NetworkOverlaps', severity }])
    expect(found[0]?.message).toContain(message)
  })

  it('a network of another interface overlaps the default of kubeadm for services', () => {
    const subnet = { address: '10.100.3.0', prefixLength: 24 }
    const routes = [...good.networks.routes, { subnet, networkInterface: 'plant0', isConnected: true }]
    const [problem] = judge({ networks: { ...good.networks, routes } })
    expect(problem?.message).toBe(
      'the network of services, 10.96.0.0/12, overlaps 10.100.3.0/24 at the interface plant0 of this host; change podSubnet or serviceSubnet in the Kubernetes pack',
    )
  })

  it.each([
    [
      'serviceSubnet: "fd02::/112", podSubnet: "fd01::/48"',
      /^the network of services, fd02::\/112, is of IPv6, and the address of this host, 10\.77\.0\.11, is not: /,
    ],
    [
      'serviceSubnet: "fd02::/112,10.96.0.0/16", podSubnet: "10.244.0.0/16,fd01::/48"',
      /^the network of services, fd02::\/112, is of IPv6, and the address of this host, 10\.77\.0\.11, is not: /,
    ],
    [
      'podSubnet: "fd01::/48"',
      /^the network of services, 10\.96\.0\.0\/12, is of IPv4, and no network of pods is: /,
    ],
  ])('%s is of another family than what it has to go with', (text, message) => {
    const found = judge({}, { config: networking(text) })
    expect(found).toMatchObject([{ code: 'NetworkFamilyDiffers', severity: 'error' }])
    expect(found[0]?.message).toMatch(message)
  })

  it('networks beside each other are no problem', () => {
    const config = networking(
      'podSubnet: "10.244.0.0/16,fd01::/48", serviceSubnet: "10.96.0.0/16,fd02::/112"',
    )
    expect(judge({}, { config })).toEqual([])
  })
})

it.each([
  ['edge-1.plant.example', true],
  ['Edge-1', false],
  ['edge_1', false],
  ['localhost', false],
  ['localhost.localdomain', false],
  ['-edge', false],
  ['', false],
  ['e'.repeat(63), true],
  ['e'.repeat(64), false],
])('the host name %j can be that of a node: %s', (name, isValid) => {
  expect(codes({}, { name })).toEqual(isValid ? [] : ['error NodeNameInvalid'])
})

it.each([
  [1 * gibibyte, 40 * gibibyte, 'error'],
  [5 * gibibyte, 40 * gibibyte, 'warning'],
  [7 * gibibyte, 40 * gibibyte, undefined],
])('%d bytes free of %d: %s', (freeBytes, sizeBytes, severity) => {
  const found = codes({
    spaces: [{ folder: '/var/lib/edgehostd', neededBytes: 2 * gibibyte, sizeBytes, freeBytes }],
  })
  expect(found).toEqual(severity ? [`${severity} DiskSpaceLow`] : [])
})

it.each([
  [180, 200, ['error DiskSpaceLow']],
  [30_000, 1_000_000, ['warning DiskSpaceLow']],
  [60_000, 1_000_000, []],
])('room for %d files of %d: %j', (free, total, expected) => {
  const space = { sizeBytes: 9 * gibibyte, freeBytes: 8 * gibibyte, inodes: { total, free } }
  expect(codes({ spaces: [{ folder: '/var/lib', neededBytes: gibibyte, ...space }] })).toEqual(expected)
})

it.each([
  ['{failSwapOn: false}', '[]', false],
  ['{failSwapOn: false}', '[{name: fail-swap-on, value: "true"}]', true],
  ['{}', '[{name: fail-swap-on, value: "False"}]', false],
  ['{}', '{fail-swap-on: "0"}', false],
  ['{failSwapOn: off}', '[{name: fail-swap-on, value: odd}]', false],
])('swap with the file %s and the arguments %s of the kubelet: refused %s', (file, given, isRefused) => {
  const config = `kubeletConfiguration: ${file}\ninitConfiguration: {nodeRegistration: {kubeletExtraArgs: ${given}}}\n`
  expect(codes({ swaps: ['/dev/sda2'] }, { config })).toEqual(isRefused ? ['error SwapEnabled'] : [])
})

it('the port of the health of the kubelet is that of its arguments', () => {
  const config =
    'initConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: healthz-port, value: "10333"}]}}\n'
  expect(codes({ ports: new Set([10_333]) }, { config })).toEqual(['error PortTaken'])
})

it('each file system that the cluster fills is judged by what it needs there', () => {
  const state = { folder: '/var/lib/edgehostd', neededBytes: 2 * gibibyte, sizeBytes: 9 * gibibyte }
  const kubelet = { folder: '/var/lib/kubelet', neededBytes: gibibyte / 4, sizeBytes: gibibyte }
  const found = judge({
    spaces: [
      { ...state, freeBytes: 8 * gibibyte },
      { ...kubelet, freeBytes: 0 },
    ],
  })
  expect(found.map(({ severity, message }) => [severity, message])).toEqual([
    [
      'error',
      'the file system of /var/lib/kubelet has 0 MiB free; a cluster needs 256 MiB there, free some space',
    ],
  ])
})

it('a firewall that drops is named with the network of the pods, and only warned of', () => {
  const droppingChains = ['chain input of table inet plantwall', 'chain FORWARD of table ip filter']
  expect(
    judge({ droppingChains }, { config: networking('podSubnet: "10.244.0.0/16,fd00:244::/56"') }),
  ).toEqual([
    {
      code: 'FirewallDrops',
      severity: 'warning',
      message:
        'the firewall of this host drops or rejects what it does not accept (chain input of table inet plantwall, chain FORWARD of table ip filter): let the packets of pods from and to 10.244.0.0/16 and fd00:244::/56 pass, and those to the TCP ports 6443 and 10250 of this host, otherwise pods reach neither the API server nor each other',
    },
  ])
})

it('a clock that is not synchronized is a warning, one before the release of Kubernetes an error', () => {
  const { now } = good.clock
  expect(codes({ clock: { now, isSynchronized: false } })).toEqual(['warning ClockNotSynchronized'])
  expect(codes({ clock: { now: 0, isSynchronized: false } })).toEqual(['error ClockWrong'])
})

it('swap is no problem where the pack allows it', () => {
  expect(codes({ swaps: ['/dev/sda2'] }, { config: 'kubeletConfiguration: {failSwapOn: false}' })).toEqual([])
})

const registration = (text: string) => `initConfiguration: {nodeRegistration: {kubeletExtraArgs: ${text}}}`
it.each([
  ['the configuration of the kubelet', 'kubeletConfiguration: {protectKernelDefaults: true}'],
  ['its arguments', registration('[{name: protect-kernel-defaults, value: "true"}]')],
  ['its arguments of v1beta3', registration('{protect-kernel-defaults: "true"}')],
])('sysctls that the kubelet will not start with are named where %s protect them', (_, config) => {
  const sysctls = new Map(good.sysctls).set('kernel.panic', '0')
  sysctls.delete('kernel.keys.root_maxkeys')
  const [problem, ...others] = judge({ sysctls }, { config })
  expect(others).toEqual([])
  expect(problem).toMatchObject({
    ...{ code: 'KernelDefaultsDiffer', severity: 'error' },
    message: expect.stringContaining(
      'it has kernel.panic=0, kernel.keys.root_maxkeys=. Write kernel.panic=10, kernel.keys.root_maxkeys=1000000, one a line',
    ) as string,
  })
  expect(judge({}, { config })).toEqual([])
  expect(judge({ sysctls })).toEqual([])
})

it('a network configuration of podman is a warning with its name', () => {
  const [problem] = judge({ networkConfigs: ['87-podman-bridge.conflist'] })
  expect(problem).toMatchObject({ code: 'NetworkConfigPresent', severity: 'warning' })
  expect(problem?.message).toContain('87-podman-bridge.conflist')
})

it('the port of the API server is that of the pack', () => {
  const config = 'initConfiguration: {localAPIEndpoint: {bindPort: 7443}}'
  expect(codes({ ports: new Set([6443]) }, { config })).toEqual([])
  const [problem] = judge({ ports: new Set([7443]) }, { config })
  expect(problem?.message).toBe(
    "another program listens at TCP port 7443, which the cluster needs; ss -ltnp 'sport = :7443' names it",
  )
})

it('every port without which the control plane does not start is looked at', () => {
  const ports = [6443, 2379, 2380, 2381, 10248, 10250, 10257, 10259]
  const found = judge({ ports: new Set([...ports, 10249, 10256]) })
  expect(found.map(({ message }) => Number(/ port (\d+),/.exec(message)?.[1]))).toEqual(ports)
  expect(new Set(found.map(({ code, severity }) => `${severity} ${code}`))).toEqual(
    new Set(['error PortTaken']),
  )
})

it('the port for the health of the kubelet is that of the pack', () => {
  const config = 'kubeletConfiguration: {healthzPort: 10348}'
  expect(codes({ ports: new Set([10248]) }, { config })).toEqual([])
  expect(codes({ ports: new Set([10348]) }, { config })).toEqual(['error PortTaken'])
})

it('ports are those of listening sockets, of IPv4 and IPv6', () => {
  expect(
    parseListening(
      `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:305C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11862811 2 00 100 0 0 10 0
   1: 0B004D0A:192B 0C004D0A:C350 01 00000000:00000000 00:00000000 00000000     0        0 11862813 2 00 100 0 0 10 0
   2: 00000000000000000000000000000000:192B 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 32 1 00 100 0 0 10 0
`,
    ),
  ).toEqual([12380, 6443])
})

it('swaps are files and devices', () => {
  const text =
    'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t1000\t\t0\t\t-2\n'
  expect(parseSwaps(text)).toEqual(['/dev/sda2'])
})
