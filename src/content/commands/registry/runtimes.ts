import { containerdHosts } from '../../registry/containerd-hosts.ts'
import { Failure } from '../../../ctl/exit-codes.ts'

/** The registry of a host, as a container runtime reaches it. */
export interface ReachedRegistry {
  /** Host and port: `127.0.0.1:5081`. */
  readonly host: string
  readonly isTls: boolean
  /** Undefined where it answers without a password. */
  readonly login: { readonly username: string; readonly password: string } | undefined
  /** Certificate that the runtime has to trust, PEM; of a registry with TLS. */
  readonly certificate: string | undefined
  /** Registries that the images of the host are of: `docker.io`, `registry.example:5000`. */
  readonly hosts: readonly string[]
}

/** A file of a container runtime. */
export interface ConfigurationFile {
  readonly path: string
  /** Permission bits, octal. Files with a password are for their owner alone. */
  readonly mode: '0600' | '0644'
  readonly content: string
}

/** Files and steps that make a container runtime pull from the registry. */
export interface RuntimeConfiguration {
  readonly files: readonly ConfigurationFile[]
  /** Steps beside the files, and limits of the files; whole sentences. */
  readonly steps: readonly string[]
}

const urlOf = ({ isTls, host }: ReachedRegistry): string => `${isTls ? 'https' : 'http'}://${host}`

/** `user:password` in Base64, as HTTP (RFC 7617) and auth.json have it. */
const basicOf = ({ username, password }: NonNullable<ReachedRegistry['login']>): string =>
  Buffer.from(`${username}:${password}`).toString('base64')

/** The mode of a file that may have the password. */
const modeOf = ({ login }: ReachedRegistry): ConfigurationFile['mode'] => (login ? '0600' : '0644')

/** The certificate of a registry with TLS as a file; none without. */
const certificateFile = ({ certificate }: ReachedRegistry, path: string): ConfigurationFile[] =>
  certificate === undefined ? [] : [{ path, mode: '0644', content: certificate }]

/** A string of TOML, YAML or JSON: all three read the escapes of JSON. */
const quote = (text: string): string => JSON.stringify(text)

const heading = '# Written by edgehostctl content registry config.'

/** Step that follows from a certificate in a file. */
const certificateStep =
  'The certificate of the host is a file here: run this command again when it was renewed (edgehostctl status), or replace the file by that of your own authority.'

const folder = '/etc/containerd/certs.d'
const containerdCertificate = `${folder}/_default/edgehostd.crt`

/** For containerd 1.5 and later, and nerdctl. */
export function configureContainerd(registry: ReachedRegistry): RuntimeConfiguration {
  const { login, certificate } = registry
  const content = containerdHosts(
    {
      url: urlOf(registry),
      basic: login && basicOf(login),
      certificatePath: certificate === undefined ? undefined : containerdCertificate,
    },
    heading,
  )
  return {
    files: [
      {
        path: `${folder}/_default/hosts.toml`,
        mode: modeOf(registry),
        content,
      },
      ...certificateFile(registry, containerdCertificate),
    ],
    steps: [
      `Kubernetes pulls by it if /etc/containerd/config.toml has config_path = "${folder}" in its table [plugins."io.containerd.grpc.v1.cri".registry]; in containerd 2 that is [plugins."io.containerd.cri.v1.images".registry]. Write it into that file, since a file that imports names replaces the whole table of the plugin, and then: systemctl restart containerd. A change of hosts.toml needs no restart.`,
      `ctr needs --hosts-dir ${folder}.`,
      `A folder of one registry, for example ${folder}/docker.io, counts before _default; remove it, or give it the same file.`,
      ...(certificate === undefined ? [] : [certificateStep]),
    ],
  }
}

/**
 * For dockerd: a mirror of docker.io. It sends no password to a mirror, and takes no URL with one, so a registry with TLS, which wants one, can
 * only be pulled from by its own name. Source: https://docs.docker.com/docker-hub/image-library/mirror/ and https://docs.docker.com/engine/security/certificates/
 * @throws Failure for a registry with a password and without TLS
 */
export function configureDocker(registry: ReachedRegistry): RuntimeConfiguration {
  const { host, isTls, login } = registry
  const byName = `docker login --username edgehostd ${host}, then for example docker pull ${host}/docker.io/library/busybox:latest`
  if (isTls)
    return {
      files: certificateFile(registry, `/etc/docker/certs.d/${host}/ca.crt`),
      steps: [
        `dockerd sends no password to a mirror, and this registry wants one, so images have its name before theirs: ${byName}. GET /v1/edge-mgmt/content/registry/password has the password.`,
        certificateStep,
      ],
    }
  if (login)
    throw new Failure(
      'failed',
      `dockerd sends no password to a mirror, and this registry wants one. Either set content.registry.anonymous: true, which a registry on loopback allows, and restart edgehostd; or pull by the name of this registry: ${byName}`,
    )
  return {
    files: [
      {
        path: '/etc/docker/daemon.json',
        mode: '0644',
        content: `{\n  "registry-mirrors": [${quote(urlOf(registry))}]\n}\n`,
      },
    ],
    steps: [
      'If /etc/docker/daemon.json exists already, add the key to it. Then: systemctl reload docker.',
      `dockerd asks a mirror only for images of docker.io, and then docker.io. Images of other registries have the name of this one before theirs, as in: docker pull ${host}/quay.io/NAME:TAG`,
    ],
  }
}

const path = '/etc/rancher/k3s/registries.yaml'
const k3sCertificate = '/etc/rancher/k3s/edgehostd.crt'

/**
 * For k3s and, in another folder, RKE2. Both read `"*"` for all registries since the releases of March 2024; older ones read the names.
 * Source: https://docs.k3s.io/installation/private-registry and https://github.com/k3s-io/docs/pull/250
 */
export function configureK3s(registry: ReachedRegistry): RuntimeConfiguration {
  const { host, login, certificate, hosts } = registry
  const mirrors = ['*', ...hosts].flatMap((name) => [
    `  ${quote(name)}:`,
    '    endpoint:',
    `      - ${quote(urlOf(registry))}`,
  ])
  const access = [
    ...(login
      ? ['    auth:', `      username: ${quote(login.username)}`, `      password: ${quote(login.password)}`]
      : []),
    ...(certificate === undefined ? [] : ['    tls:', `      ca_file: ${quote(k3sCertificate)}`]),
  ]
  const lines = [
    `${heading} k3s reads "*" for all registries since 1.26.15, 1.27.12, 1.28.8 and 1.29.3.`,
    'mirrors:',
    ...mirrors,
    ...(access.length > 0 ? ['configs:', `  ${quote(host)}:`, ...access] : []),
  ]
  return {
    files: [
      { path, mode: modeOf(registry), content: `${lines.join('\n')}\n` },
      ...certificateFile(registry, k3sCertificate),
    ],
    steps: [
      'k3s reads it when it starts: systemctl restart k3s (on an agent: k3s-agent). It is needed on each node that runs workloads.',
      'For an image that this registry does not have k3s asks the registry of the image’s name on the internet, unless it runs with --disable-default-registry-endpoint (since January 2024).',
      'For RKE2 the same file is /etc/rancher/rke2/registries.yaml.',
      ...(certificate === undefined ? [] : [certificateStep]),
    ],
  }
}

const authPath = '/root/.config/containers/auth.json'

/**
 * For podman, skopeo and Buildah. They know no name for all registries, so each registry of the host's images has an entry. With
 * `location`, instead of a mirror, no other registry is asked for missing images. `podman login` has
 * another file of passwords, on a tmpfs. Source: containers-registries.conf(5), containers-auth.json(5), containers-certs.d(5)
 */
export function configurePodman(registry: ReachedRegistry): RuntimeConfiguration {
  const { host, isTls, login, hosts } = registry
  const insecure = isTls ? [] : ['insecure = true']
  const entry = (prefix: string, location: string) => [
    '',
    '[[registry]]',
    `prefix = ${quote(prefix)}`,
    `location = ${quote(location)}`,
    ...insecure,
  ]
  const lines = [
    `${heading} Images of these registries come from this one, and from nowhere else.`,
    ...entry(host, host),
    ...hosts
      // A reference of podman 4 has no IPv6 address.
      .filter((name) => name !== host && !name.startsWith('['))
      // A path has no colon; the registry reads _5000 at the end of a host as a port.
      .flatMap((name) => entry(name, `${host}/${name.replace(':', '_')}`)),
  ]
  const auth: ConfigurationFile[] = login
    ? [
        {
          path: authPath,
          mode: '0600',
          content: `${JSON.stringify({ auths: { [host]: { auth: basicOf(login) } } }, null, 2)}\n`,
        },
      ]
    : []
  return {
    files: [
      {
        path: '/etc/containers/registries.conf.d/edgehostd.conf',
        mode: '0644',
        content: `${lines.join('\n')}\n`,
      },
      ...auth,
      ...certificateFile(registry, `/etc/containers/certs.d/${host}/ca.crt`),
    ],
    steps: [
      hosts.length > 0
        ? 'Run this command again after an upload with images of a further registry: podman and skopeo have no name for all registries.'
        : 'The host has no images yet: run this command again after an upload. podman and skopeo have no name for all registries.',
      ...(login
        ? [
            `If ${authPath} exists already, add the entry to it. A user other than root needs an own copy, ~/.config/containers/auth.json.`,
          ]
        : []),
      'skopeo inspect needs --no-tags: it asks for tags on the internet.',
      ...(isTls ? [certificateStep] : []),
    ],
  }
}
