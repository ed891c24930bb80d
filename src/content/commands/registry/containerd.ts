import { containerdHosts } from '../../registry/containerd-hosts.ts'
import {
  basicOf,
  certificateFile,
  certificateStep,
  heading,
  modeOf,
  urlOf,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from './reached.ts'

const folder = '/etc/containerd/certs.d'
const certificatePath = `${folder}/_default/edgehostd.crt`

/** For containerd 1.5 and later, and nerdctl. */
export function configureContainerd(registry: ReachedRegistry): RuntimeConfiguration {
  const { login, certificate } = registry
  const content = containerdHosts(
    {
      url: urlOf(registry),
      basic: login && basicOf(login),
      certificatePath: certificate === undefined ? undefined : certificatePath,
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
