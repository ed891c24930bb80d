import {
  basicOf,
  certificateFile,
  certificateStep,
  heading,
  quote,
  type ConfigurationFile,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from './reached.ts'

const authPath = '/root/.config/containers/auth.json'

/**
 * For podman, skopeo and Buildah. They know no name for all registries, so each registry of the host's images has an entry. With
 * `location`, instead of a mirror, no other registry is asked for what the host does not have. The file of
 * passwords is not that of `podman login`, which is on a tmpfs. Source: containers-registries.conf(5), containers-auth.json(5), containers-certs.d(5)
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
