import { describe, expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'
import {
  configureContainerd,
  configureDocker,
  configureK3s,
  configurePodman,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from '../../../src/content/commands/registry/runtimes.ts'

const basic = Buffer.from('edgehostd:p"\\w').toString('base64')
const local: ReachedRegistry = {
  host: '127.0.0.1:5081',
  isTls: false,
  login: { username: 'edgehostd', password: 'p"\\w' },
  certificate: undefined,
  hosts: ['docker.io', 'registry.example:5000'],
}
const anonymous: ReachedRegistry = { ...local, login: undefined }
const remote: ReachedRegistry = { ...local, host: 'box.example:5081', isTls: true, certificate: 'PEM\n' }

const contentOf = ({ files }: RuntimeConfiguration, path: string) =>
  files.find((file) => file.path === path)?.content
const modes = ({ files }: RuntimeConfiguration) => files.map(({ path, mode }) => [path, mode])

describe('the files for containerd', () => {
  const path = '/etc/containerd/certs.d/_default/hosts.toml'

  it('name the registry as server and as host, each with the password', () => {
    const configuration = configureContainerd(local)
    expect(contentOf(configuration, path)).toBe(`\
# Written by edgehostctl content registry config. Images of all registries come from this one, and from nowhere else.
# Containerd 1.6 needs both: it ignores server without [host], and after [host] it asks server.
server = "http://127.0.0.1:5081"

[header]
  Authorization = "Basic ${basic}"

[host."http://127.0.0.1:5081"]
  capabilities = ["pull", "resolve"]

[host."http://127.0.0.1:5081".header]
  Authorization = "Basic ${basic}"
`)
    expect(modes(configuration)).toEqual([[path, '0600']])
  })

  it('trust the certificate of a registry with TLS in both places', () => {
    const configuration = configureContainerd(remote)
    const certificate = '/etc/containerd/certs.d/_default/edgehostd.crt'
    expect(contentOf(configuration, path)?.match(/ca = ".*"/g)).toEqual(
      Array(2).fill(`ca = "${certificate}"`),
    )
    expect(contentOf(configuration, path)).toContain('server = "https://box.example:5081"\n')
    expect(contentOf(configuration, certificate)).toBe('PEM\n')
  })

  it('have no header without a password, and all may read them', () => {
    const configuration = configureContainerd(anonymous)
    expect(contentOf(configuration, path)).not.toMatch(/header|Authorization/)
    expect(modes(configuration)).toEqual([[path, '0644']])
  })
})

describe('the files for k3s', () => {
  const path = '/etc/rancher/k3s/registries.yaml'
  const parsed = (registry: ReachedRegistry) =>
    parseYaml(contentOf(configureK3s(registry), path) ?? '') as unknown

  it('name the registry for all, and for older versions for each registry of the images', () => {
    const endpoint = ['http://127.0.0.1:5081']
    expect(parsed(local)).toEqual({
      mirrors: {
        '*': { endpoint },
        'docker.io': { endpoint },
        'registry.example:5000': { endpoint },
      },
      configs: { '127.0.0.1:5081': { auth: local.login } },
    })
    expect(modes(configureK3s(local))).toEqual([[path, '0600']])
  })

  it('trust the certificate of a registry with TLS', () => {
    const certificate = '/etc/rancher/k3s/edgehostd.crt'
    expect(parsed(remote)).toMatchObject({
      mirrors: { '*': { endpoint: ['https://box.example:5081'] } },
      configs: { 'box.example:5081': { auth: remote.login, tls: { ca_file: certificate } } },
    })
    expect(contentOf(configureK3s(remote), certificate)).toBe('PEM\n')
  })

  it('have no configs without a password', () => {
    expect(Object.keys(parsed(anonymous) as object)).toEqual(['mirrors'])
  })
})

describe('the files for podman', () => {
  const path = '/etc/containers/registries.conf.d/edgehostd.conf'
  const auth = '/root/.config/containers/auth.json'

  it('put the registry in the place of each registry of the images, and say that it is HTTP', () => {
    const configuration = configurePodman(local)
    expect(contentOf(configuration, path)).toBe(`\
# Written by edgehostctl content registry config. Images of these registries come from this one, and from nowhere else.

[[registry]]
prefix = "127.0.0.1:5081"
location = "127.0.0.1:5081"
insecure = true

[[registry]]
prefix = "docker.io"
location = "127.0.0.1:5081/docker.io"
insecure = true

[[registry]]
prefix = "registry.example:5000"
location = "127.0.0.1:5081/registry.example_5000"
insecure = true
`)
    expect(JSON.parse(contentOf(configuration, auth) ?? '')).toEqual({
      auths: { '127.0.0.1:5081': { auth: basic } },
    })
    expect(modes(configuration)).toEqual([
      [path, '0644'],
      [auth, '0600'],
    ])
  })

  it('leave out a registry that podman cannot name', () => {
    const configuration = configurePodman({ ...local, hosts: ['[2001:db8::7]:5000', 'docker.io'] })
    const prefixes = contentOf(configuration, path)?.match(/prefix = .*/g)
    expect(prefixes).toEqual(['prefix = "127.0.0.1:5081"', 'prefix = "docker.io"'])
  })

  it('trust the certificate of a registry with TLS, which is not insecure', () => {
    const configuration = configurePodman(remote)
    expect(contentOf(configuration, path)).not.toContain('insecure')
    expect(contentOf(configuration, '/etc/containers/certs.d/box.example:5081/ca.crt')).toBe('PEM\n')
  })

  it('have no password where none is wanted, and a host without images is said', () => {
    const configuration = configurePodman({ ...anonymous, hosts: [] })
    expect(modes(configuration)).toEqual([[path, '0644']])
    expect(configuration.steps[0]).toContain('no images yet')
  })
})

describe('the files for docker', () => {
  it('name the registry as a mirror', () => {
    expect(configureDocker(anonymous).files).toEqual([
      {
        path: '/etc/docker/daemon.json',
        mode: '0644',
        content: '{\n  "registry-mirrors": ["http://127.0.0.1:5081"]\n}\n',
      },
    ])
  })

  it('are refused where the registry wants a password, with what helps', () => {
    expect(() => configureDocker(local)).toThrow(
      /no password.*content\.registry\.anonymous: true.*docker login --username edgehostd 127\.0\.0\.1:5081/,
    )
  })

  it('are the certificate of a registry with TLS, from which images are pulled by its own name', () => {
    const { files, steps } = configureDocker(remote)
    expect(files).toEqual([
      { path: '/etc/docker/certs.d/box.example:5081/ca.crt', mode: '0644', content: 'PEM\n' },
    ])
    expect(steps[0]).toContain('docker pull box.example:5081/docker.io/library/busybox:latest')
  })
})
