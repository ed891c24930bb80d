import type { Context } from '../../../ctl/context.ts'
import { Failure } from '../../../ctl/exit-codes.ts'
import { understand } from '../../../ctl/reply.ts'
import { eachLine, oneLine } from '../../../ctl/text.ts'
import type { ContentRegistry, ContentRegistryPassword } from '../../schemas.ts'
import { configureContainerd } from './containerd.ts'
import { configureDocker } from './docker.ts'
import { configureK3s } from './k3s.ts'
import { placeFiles } from './place-files.ts'
import { configurePodman } from './podman.ts'
import type { ReachedRegistry, RuntimeConfiguration } from './reached.ts'
import { registryFields, registryPath } from './show.ts'

const runtimes: Readonly<Record<string, (registry: ReachedRegistry) => RuntimeConfiguration>> = {
  containerd: configureContainerd,
  k3s: configureK3s,
  podman: configurePodman,
  docker: configureDocker,
}

/** `edgehostctl content registry config`. */
export async function configureRuntime(
  context: Context<'for' | 'address' | 'directory' | 'replace'>,
): Promise<undefined> {
  const { line, output } = context
  const { for: runtime = '', directory, replace } = line.options
  const configure = runtimes[runtime]
  if (!configure)
    throw new Failure(
      'usage',
      `content registry config needs --for and what pulls: ${Object.keys(runtimes).join(', ')}`,
    )
  const reached = await reach(context)
  const { files, steps } = understand(() => configure(reached))
  if (directory === undefined) {
    await output.show({ for: runtime, files, steps }, () =>
      files.map(({ path, mode, content }) => `# ${path} (mode ${mode})\n${eachLine(content)}`).join('\n'),
    )
  } else {
    const written = await placeFiles(files, { directory, replaces: replace !== undefined })
    await output.show({ for: runtime, files: written, steps }, () =>
      written.map(({ path }) => `${oneLine(path)}\n`).join(''),
    )
  }
  if (output.format === 'table') for (const step of steps) output.note(`\n${oneLine(step)}`)
  return undefined
}

async function reach({ client, line, output }: Context<'address'>): Promise<ReachedRegistry> {
  const registry = await client.get<ContentRegistry>(registryPath, registryFields)
  if (!registry.isEnabled)
    throw new Failure(
      'failed',
      'the registry of the host is switched off; set content.registry.enabled: true there and restart edgehostd',
    )
  const host = understand(() => hostOf(registry, line.options.address))
  if (!registry.isListening)
    output.note(`It does not listen now: ${oneLine(registry.problem ?? 'edgehostd is starting')}.\n`)
  const login = registry.isAnonymous
    ? undefined
    : await client.get<ContentRegistryPassword>(`${registryPath}/password`, ['username', 'password'])
  return { host, isTls: registry.isTls, login, certificate: registry.certificate, hosts: registry.hosts }
}

const everyAddress: readonly string[] = ['0.0.0.0', '::']
const hostName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i

/** @throws Failure for what a container runtime cannot read as a host */
function hostOf({ address, port }: ContentRegistry, given: string | undefined): string {
  if (given !== undefined && !hostName.test(given))
    throw new Failure(
      'usage',
      `--address is ${oneLine(given) || 'empty'}; it must be a name or an IPv4 address, without a port`,
    )
  const name = given ?? (everyAddress.includes(address) ? '127.0.0.1' : address)
  // The TOML of containerd 1.6 has no key with a bracket, and podman 4 no reference with one.
  if (name.includes(':'))
    throw new Failure(
      'failed',
      `the registry listens on ${oneLine(name)}, and container runtimes cannot read an IPv6 address in these files; give a name of the host that leads there: --address NAME`,
    )
  return `${name}:${port}`
}
