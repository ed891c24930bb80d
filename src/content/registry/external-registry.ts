import { containerdHosts, quote, type ContainerdRegistry } from './containerd-hosts.ts'

/** A registry of others, from which the container runtime of this host may pull too. */
export interface ExternalRegistry {
  /** As names of images begin with it: `registry.example` or `registry.example:5000`. */
  readonly domain: string
  /** Login; empty for none. */
  readonly username: string
  readonly password: string
  /** Authorities that its certificate may be signed by, PEM; none: those of the system. */
  readonly certificates: readonly string[]
  /** Its certificate is not checked. */
  readonly isInsecure: boolean
}

// The names of images of Docker Hub begin with another domain than its registry has.
const servers: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' }

/** Where the registry of a domain answers, as containerd asks for a login too. */
export const serverOf = (domain: string): string => servers[domain] ?? domain

/**
 * The file `DOMAIN/hosts.toml` of containerd for a registry of others: the registry of this host is asked first, and answers what its content has.
 * @param own the registry of this host
 * @param authorityPath of its authorities, PEM; undefined for those of the system
 */
export function externalHosts(
  { domain, isInsecure }: Pick<ExternalRegistry, 'domain' | 'isInsecure'>,
  authorityPath: string | undefined,
  own: ContainerdRegistry,
  heading: string,
): string {
  const trust = [
    ...(authorityPath === undefined ? [] : [`ca = ${quote(authorityPath)}`]),
    ...(isInsecure ? ['skip_verify = true'] : []),
  ]
  return containerdHosts(own, `${heading} The content of this host first, then ${domain}.`, {
    url: `https://${serverOf(domain)}`,
    trust,
  })
}
