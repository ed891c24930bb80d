import {
  basicOf,
  certificateFile,
  certificateStep,
  heading,
  modeOf,
  quote,
  urlOf,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from './reached.ts'

const folder = '/etc/containerd/certs.d'
const certificatePath = `${folder}/_default/edgehostd.crt`

/**
 * For containerd 1.5 and later, and nerdctl. `_default` is for every registry that has no folder of its own. Containerd 1.6 ignores a
 * file with `server` alone, and after `[host]` it asks `server`, which by default is the registry of the image's name on
 * the internet; so the file has both, and both send the password, for which it has no other place than `header`.
 * Source: https://github.com/containerd/containerd/blob/main/docs/hosts.md
 */
export function configureContainerd(registry: ReachedRegistry): RuntimeConfiguration {
  const url = quote(urlOf(registry))
  const { login, certificate } = registry
  const ca = certificate === undefined ? [] : [`ca = ${quote(certificatePath)}`]
  const header = login ? [`Authorization = ${quote(`Basic ${basicOf(login)}`)}`] : []
  const table = (name: string, lines: readonly string[]) =>
    lines.length > 0 ? [`[${name}]`, ...lines.map((line) => `  ${line}`), ''] : []
  const lines = [
    `${heading} Images of all registries come from this one, and from nowhere else.`,
    '# Containerd 1.6 needs both: it ignores server without [host], and after [host] it asks server.',
    `server = ${url}`,
    ...ca,
    '',
    ...table('header', header),
    ...table(`host.${url}`, ['capabilities = ["pull", "resolve"]', ...ca]),
    ...table(`host.${url}.header`, header),
  ]
  return {
    files: [
      {
        path: `${folder}/_default/hosts.toml`,
        mode: modeOf(registry),
        content: `${lines.join('\n').trimEnd()}\n`,
      },
      ...certificateFile(registry, certificatePath),
    ],
    steps: [
      `Kubernetes pulls by it if /etc/containerd/config.toml has config_path = "${folder}" in its table [plugins."io.containerd.grpc.v1.cri".registry]; in containerd 2 that is [plugins."io.containerd.cri.v1.images".registry]. Write it into that file, since a file that imports names replaces the whole table of the plugin, and then: systemctl restart containerd. A change of hosts.toml needs no restart.`,
      `ctr needs --hosts-dir ${folder}.`,
      `A folder of one registry, for example ${folder}/docker.io, counts before _default; remove it, or give it the same file.`,
      ...(certificate === undefined ? [] : [certificateStep]),
    ],
  }
}
