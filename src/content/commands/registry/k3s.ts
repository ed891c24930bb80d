import {
  certificateFile,
  certificateStep,
  heading,
  modeOf,
  quote,
  urlOf,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from './reached.ts'

const path = '/etc/rancher/k3s/registries.yaml'
const certificatePath = '/etc/rancher/k3s/edgehostd.crt'

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
    ...(certificate === undefined ? [] : ['    tls:', `      ca_file: ${quote(certificatePath)}`]),
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
      ...certificateFile(registry, certificatePath),
    ],
    steps: [
      'k3s reads it when it starts: systemctl restart k3s (on an agent: k3s-agent). It is needed on each node that runs workloads.',
      'For an image that this registry does not have k3s asks the registry of the image’s name on the internet, unless it runs with --disable-default-registry-endpoint (since January 2024).',
      'For RKE2 the same file is /etc/rancher/rke2/registries.yaml.',
      ...(certificate === undefined ? [] : [certificateStep]),
    ],
  }
}
