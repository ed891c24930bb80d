import { dirname, join } from 'node:path'
import { addressWithPort } from '../../base/address.ts'
import { containerdHosts } from '../../content/registry/containerd-hosts.ts'
import type { RegistryState } from '../../content/registry/registry.ts'
import type { ClusterPaths } from './paths.ts'

/** How our containerd reaches the registry of this host. */
export interface RegistryFiles {
  /** Path and content. */
  readonly files: ReadonlyMap<string, string>
  /** Why they cannot be made, and what to do; undefined where they can. */
  readonly problem: string | undefined
}

const everyAddress: readonly string[] = ['0.0.0.0', '::']

export function registryFilesOf(
  { registries }: Pick<ClusterPaths, 'registries'>,
  { isEnabled, address, port, isTls, isAnonymous, username, password }: RegistryState,
  certificate: string,
): RegistryFiles {
  const refused = (problem: string): RegistryFiles => ({ files: new Map(), problem })
  if (!isEnabled)
    return refused('the registry of this host is switched off; set content.registry.enabled: true')
  const host = everyAddress.includes(address) ? '127.0.0.1' : address
  // The TOML of containerd 1.6 has no key with a bracket.
  if (host.includes(':'))
    return refused(
      `the registry of this host listens on ${host} only, and containerd needs an IPv4 address; set content.registry.address: 127.0.0.1`,
    )
  if (!isAnonymous && password === '')
    return refused('the registry of this host has no password yet; see: journalctl -u edgehostd')
  const hosts = join(registries, '_default', 'hosts.toml')
  const certificatePath = isTls ? join(dirname(hosts), 'edgehostd.crt') : undefined
  const basic = isAnonymous ? undefined : Buffer.from(`${username}:${password}`).toString('base64')
  const url = `${isTls ? 'https' : 'http'}://${addressWithPort(host, port)}`
  return {
    problem: undefined,
    files: new Map([
      [hosts, containerdHosts({ url, basic, certificatePath }, '# Written by edgehostd.')],
      ...(certificatePath === undefined ? [] : [[certificatePath, certificate] as const]),
    ]),
  }
}
