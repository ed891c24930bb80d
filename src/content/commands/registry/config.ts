import { renderFacts, type Fact, eachLine, oneLine } from '../../../ctl/layout.ts'
import type { Context } from '../../../ctl/client.ts'
import type { ContentRegistry, ContentRegistryPassword } from '../../schemas.ts'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../../ctl/exit-codes.ts'
import { removeOnSignal } from '../../../program/remove-on-signal.ts'
import { placeFile } from '../../../system/place-file.ts'
import {
  type ConfigurationFile,
  configureContainerd,
  configureDocker,
  configureK3s,
  configurePodman,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from './runtimes.ts'
import { understand } from '../../../ctl/reply.ts'

export const registryPath = '/v1/edge-mgmt/content/registry'
/** Fields of every reply; the others are of some registries only. */
export const registryFields = ['isEnabled', 'address', 'port', 'hosts'] as const

/** `edgehostctl content registry show`. */
export async function showRegistry({ client, output }: Context): Promise<undefined> {
  const registry = await client.get<ContentRegistry>(registryPath, registryFields)
  await output.show(registry, (paper) => renderFacts(factsOf(registry), paper))
  return undefined
}

function factsOf({ isEnabled, address, port, isTls, isAnonymous, ...registry }: ContentRegistry): Fact[] {
  const { isListening, problem, username, hosts } = registry
  const images: Fact = { label: 'Images of', lines: hosts.length > 0 ? hosts : ['-'] }
  if (!isEnabled)
    return [
      {
        label: 'Registry',
        lines: ['switched off; content.registry.enabled switches it on'],
        mood: 'warning',
      },
      images,
    ]
  const host = address.includes(':') ? `[${address}]` : address
  return [
    { label: 'Registry', lines: [`${isTls ? 'https' : 'http'}://${host}:${port}`] },
    isListening
      ? { label: 'State', lines: ['listening'], mood: 'good' }
      : {
          label: 'State',
          lines: ['not listening', ...(problem === undefined ? [] : [problem])],
          mood: 'bad',
        },
    {
      label: 'Access',
      lines: [isAnonymous ? 'without a password' : `as ${username}, with the password of this host`],
    },
    images,
  ]
}

export interface PlaceFilesOptions {
  /** The paths of the files are below it. */
  readonly directory: string
  /** Whether files with another content are replaced. */
  readonly replaces: boolean
}

/**
 * Writes files, and the folders that they need.
 * @returns the written files
 * @throws Failure before the first is written, if one has another content and may not be replaced
 */
export async function placeFiles(
  files: readonly ConfigurationFile[],
  { directory, replaces }: PlaceFilesOptions,
): Promise<Pick<ConfigurationFile, 'path' | 'mode'>[]> {
  const placed = files.map(({ path, ...file }) => ({ ...file, path: join(directory, path) }))
  if (!replaces) for (const { path, content } of placed) await requireOurs(path, content)
  const onBegin = removeOnSignal()
  for (const { path, mode, content } of placed) {
    try {
      await mkdir(dirname(path), { recursive: true })
      await placeFile({
        path,
        mode: Number.parseInt(mode, 8),
        onBegin,
        write: async (file) => {
          await file.writeFile(content)
          await file.sync()
        },
      })
    } catch (error) {
      throw unwritten(path, error)
    }
  }
  return placed.map(({ path, mode }) => ({ path, mode }))
}

async function requireOurs(path: string, content: string): Promise<void> {
  const present = await readFile(path, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unwritten(path, error)
  })
  if (present !== undefined && present !== content)
    throw new Failure(
      'failed',
      `${path} has another content, and nothing was written; join the two by hand (without --directory the command prints its files), or replace it with --replace`,
    )
}

const unwritten = (path: string, error: unknown) =>
  new Failure('failed', `${path} could not be written: ${(error as Error).message}`, { cause: error })

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

/** @throws Failure for text that a container runtime cannot read as a host */
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
