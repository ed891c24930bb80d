import { expect, it } from 'vitest'
import { containerdConfig, registryFilesOf } from '../../../../src/cluster/engine/containerd.ts'
import { mountsBelow } from '../../../../src/cluster/engine/remove-kubernetes.ts'
import { parsePackConfig } from '../../../../src/cluster/engine/pack-config.ts'
import { clusterPaths } from '../../../../src/cluster/engine/paths.ts'
import { requiredFiles } from '../../../../src/cluster/engine/preflight.ts'
import { kubectlOf } from '../../../../src/cluster/engine/paths.ts'
import { containerdUnit, kubeletUnit } from '../../../../src/cluster/engine/units.ts'
import { parseUnitStates } from '../../../../src/cluster/engine/observe.ts'

const paths = clusterPaths('/var/lib/edgehostd')
const config = (version: string, mayLowerOomScore = true) =>
  containerdConfig({ paths, version, pauseImage: 'registry.k8s.io/pause:3.10', mayLowerOomScore })

it('containerd 1 gets version 2 of its file, with the plugin of Kubernetes as one', () => {
  const text = config('1.6.20')
  expect(text).toContain('version = 2\n')
  expect(text).toContain(
    '[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "registry.k8s.io/pause:3.10"\n',
  )
  expect(text).toContain('bin_dir = "/opt/cni/bin"')
  expect(text).not.toContain('io.containerd.cri.v1')
})

it.each([
  ['2.0.2', 'bin_dir = "/opt/cni/bin"'],
  ['2.1.0', 'bin_dirs = ["/opt/cni/bin"]'],
])('containerd %s gets version 3, with the plugin of Kubernetes as two', (version, folder) => {
  const text = config(version)
  expect(text).toContain('version = 3\n')
  expect(text).toContain(
    '[plugins."io.containerd.cri.v1.images"."pinned_images"]\nsandbox = "registry.k8s.io/pause:3.10"\n',
  )
  expect(text).toContain('[plugins."io.containerd.cri.v1.runtime"."containerd"."runtimes"."runc"]')
  expect(text).toContain(folder)
  expect(text).not.toContain('sandbox_image')
})

it.each(['1.6.20', '2.1.0'])(
  'runc of containerd %s has a state folder of its own, which goes with ours',
  (version) => {
    expect(config(version)).toMatch(
      /runtimes"\."runc"\."options"\]\nSystemdCgroup = true\nRoot = "\/run\/edgehostd-containerd\/runc"\n$/,
    )
  },
)

it('where no process may lower its score for the OOM killer, neither containerd nor systemd tries', () => {
  expect(config('1.6.20', false)).toContain('restrict_oom_score_adj = true')
  expect(config('1.6.20', true)).toContain('restrict_oom_score_adj = false')
  expect(containerdUnit(paths, false)).not.toContain('OOMScoreAdjust')
  expect(containerdUnit(paths, true)).toContain('OOMScoreAdjust=-999')
})

it('a state folder with characters that systemd expands is escaped in the units', () => {
  expect(kubeletUnit(clusterPaths('/srv/50% $HOME "x"'), 'edge-1')).toContain(
    'ExecStart="/srv/50%% $$HOME \\"x\\"/cluster/programs/kubelet/current/kubelet" --bootstrap',
  )
})

it.each(['/var/lib/edgehostd', '/srv/50% $HOME "x" \\ y'])(
  'the kubectl of a cluster below %s is found by the unit of its kubelet',
  (state) => {
    const of = clusterPaths(state)
    expect(kubectlOf(kubeletUnit(of, 'edge-1'))).toBe(`${of.programs}/kubectl/current/kubectl`)
  },
)

it.each([
  ['none', ''],
  ['the one of a package', '[Service]\nExecStart=/usr/bin/kubelet\n'],
  ['one in the form of ours', kubeletUnit(clusterPaths('/srv'), 'edge-1').replace(/^#.*\n/, '')],
  ['ours of another program', containerdUnit(clusterPaths('/srv'), false)],
])('a unit of the kubelet that is not of our cluster names no kubectl: %s', (_what, unit) => {
  expect(kubectlOf(unit)).toBeUndefined()
})

it('the name of the node is the last argument of the kubelet, so that no other takes its place', () => {
  expect(kubeletUnit(paths, 'line-7')).toMatch(
    /^ExecStart=.* \$KUBELET_KUBEADM_ARGS \$KUBELET_EXTRA_ARGS --hostname-override=line-7$/m,
  )
})

it('the states of units are read from systemctl show', () => {
  const states = parseUnitStates(
    'Id=edgehostd-containerd.service\nLoadState=loaded\nActiveState=active\n\nId=kubelet.service\nLoadState=loaded\nActiveState=activating\n\nId=other.service\nLoadState=not-found\nActiveState=inactive\n',
  )
  const names = ['edgehostd-containerd.service', 'kubelet.service', 'other.service', 'unknown']
  expect(names.map(states)).toEqual(['running', 'stopped', 'absent', 'absent'])
})

it('mounts in a folder are those of the table, the last first, with their names unescaped', () => {
  const table = [
    '1 0 8:1 / / rw - ext4 /dev/sda rw',
    '2 1 8:1 / /var/lib/kubelet rw - ext4 /dev/sda rw',
    '3 2 0:5 / /var/lib/kubelet/pods/a\\040b rw - tmpfs tmpfs rw',
    '4 3 0:5 / /var/lib/kubelet/pods/a\\040b/c rw - tmpfs tmpfs rw',
    '5 1 0:6 / /var/lib/kubelet-other/x rw - tmpfs tmpfs rw',
    '',
  ].join('\n')
  expect(mountsBelow(table, ['/var/lib/kubelet'])).toEqual([
    '/var/lib/kubelet/pods/a b/c',
    '/var/lib/kubelet/pods/a b',
  ])
})

const registry = {
  ...{ isEnabled: true, address: '127.0.0.1', port: 5081, isTls: false, isAnonymous: false },
  ...{ isListening: true, username: 'edgehostd', password: 'secret-of-registry' },
}
const hosts = '/var/lib/edgehostd/cluster/containerd-config/certs.d/_default/hosts.toml'

it('containerd pulls from the registry of this host by its password, and from nowhere else', () => {
  const { files, problem } = registryFilesOf(paths, registry, '')
  expect(problem).toBeUndefined()
  expect([...files.keys()]).toEqual([hosts])
  const text = files.get(hosts)
  expect(text).toContain('server = "http://127.0.0.1:5081"')
  expect(text).toContain('[host."http://127.0.0.1:5081"]')
  expect(text).toContain(`Basic ${Buffer.from('edgehostd:secret-of-registry').toString('base64')}`)
})

it('a registry with TLS on every address is reached on loopback, by the certificate of this host', () => {
  const { files } = registryFilesOf(paths, { ...registry, address: '0.0.0.0', isTls: true }, 'PEM')
  expect(files.get(hosts)).toContain('server = "https://127.0.0.1:5081"')
  const certificate = hosts.replace('hosts.toml', 'edgehostd.crt')
  expect(files.get(hosts)).toContain(`ca = "${certificate}"`)
  expect(files.get(certificate)).toBe('PEM')
})

it('a registry of others is asked after that of this host; its login is for the server alone', () => {
  const external = {
    domain: 'plant.example:5000',
    username: 'edge',
    password: 'p"\\',
    certificates: ['PEM 1\n', 'PEM 2\n'],
    isInsecure: false,
  }
  const { files } = registryFilesOf(paths, registry, '', external)
  const folder = '/var/lib/edgehostd/cluster/containerd-config/certs.d/plant.example:5000'
  const text = files.get(`${folder}/hosts.toml`) ?? ''
  expect(text.split('\n').slice(1, 3)).toEqual([
    'server = "https://plant.example:5000"',
    `ca = "${folder}/authorities.crt"`,
  ])
  // That of this host is in [host], which comes before the server.
  expect(text).toMatch(/\n\[host\."http:\/\/127\.0\.0\.1:5081"\]\n {2}capabilities = \["pull", "resolve"\]\n/)
  expect(text).not.toContain('edge:')
  expect(files.get(`${folder}/authorities.crt`)).toBe('PEM 1\nPEM 2\n')
  const login = JSON.parse(files.get(paths.registryLogin) ?? '') as {
    server: string
    username: string
    password: string
  }
  expect(
    containerdConfig({ paths, version: '1.6.20', pauseImage: 'pause', mayLowerOomScore: true, login }),
  ).toContain(
    '[plugins."io.containerd.grpc.v1.cri"."registry"."configs"."plant.example:5000"."auth"]\nusername = "edge"\npassword = "p\\"\\\\"\n',
  )
  // The registry of all others stays the only one.
  expect(files.get(hosts)).toContain('from nowhere else')
  const open = { ...external, domain: 'docker.io', username: '', password: '', certificates: [] }
  const hub = registryFilesOf(paths, registry, '', { ...open, isInsecure: true }).files
  expect([...hub.keys()].map((path) => path.slice(path.indexOf('certs.d')))).toEqual([
    'certs.d/_default/hosts.toml',
    'certs.d/docker.io/hosts.toml',
  ])
  expect([...hub.values()][1]).toContain('server = "https://registry-1.docker.io"\nskip_verify = true\n')
})

it.each([
  [{ isEnabled: false }, 'content.registry.enabled: true'],
  [{ address: '2001:db8::7' }, 'content.registry.address: 127.0.0.1'],
  [{ password: '' }, 'no password yet'],
])('a registry with %j cannot be used, with the reason', (change, reason) => {
  expect(registryFilesOf(paths, { ...registry, ...change }, '').problem).toContain(reason)
})

it('files that arguments of the API server need are found in both forms, at their place on the host', () => {
  const volumes = 'extraVolumes: [{name: audit, hostPath: /srv/audit/, mountPath: /etc/kubernetes/audit}]'
  const both = [
    '{audit-policy-file: /etc/kubernetes/audit/policy.yaml, audit-log-path: /var/log/audit.log, oidc-ca-file: /etc/kubernetes/pki/oidc.crt}',
    '[{name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}]',
  ]
  for (const extraArgs of both)
    expect(
      requiredFiles(
        parsePackConfig({
          config: `clusterConfiguration:\n  apiServer:\n    extraArgs: ${extraArgs}\n    ${volumes}`,
        }),
      ),
    ).toEqual([{ argument: '--audit-policy-file', path: '/srv/audit/policy.yaml' }])
  expect(requiredFiles(parsePackConfig({ config: '' }))).toEqual([])
})
