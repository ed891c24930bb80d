import { realpathSync } from 'node:fs'
import type { Loaded } from '../config/load.ts'
import type { Client } from '../ctl/client.ts'
import { hostPath } from '../ctl/cluster.ts'
import { Failure } from '../ctl/exit-codes.ts'
import { parseBody, toFailure } from '../ctl/reply.ts'
import { oneLine } from '../ctl/layout.ts'
import type { EdgeHostInfo } from '../host/schemas.ts'
import { type CommandRunner, CommandFailed } from '../system/runner.ts'
import type { PlatformLink } from '../uplink/schemas.ts'
import type { Effective } from './drop-in.ts'
import type { Places } from './files.ts'

/** A planned drop-in, as `loadConfig` of the room `config` takes it. */
export interface Plan {
  readonly file: string
  /** Undefined for one that is going to be removed. */
  readonly text: string | undefined
}

/** Parts of this host that both commands need. */
export interface ThisHost {
  readonly places: Places
  readonly stateDirectory: string
  /** The daemon over its local socket. */
  readonly client: Pick<Client, 'ask' | 'get'>
  readonly runner: CommandRunner
  /**
   * The daemon's own reading of its configuration, with a planned drop-in.
   * @param isWhole whether the files that it names are checked too
   * @throws ConfigInvalid
   */
  load(plan: Plan | undefined, isWhole: boolean): Promise<Pick<Loaded, 'config' | 'sources'>>
  /** Writes a line for the operator. */
  readonly say: (text: string, mood?: 'warning') => void
}

/** The values of a configuration that are set anywhere; a default is not. */
export const effectiveOf =
  ({ config, sources }: Pick<Loaded, 'config' | 'sources'>): Effective =>
  (path) => {
    const source = sources.get(path)
    if (source === undefined || source === 'default') return undefined
    const value = path
      .split('.')
      .reduce<unknown>((section, name) => (section as Readonly<Record<string, unknown>>)[name], config)
    return { value, source }
  }

/**
 * Requires that the daemon which answers is the one whose configuration is written: another one, as from `make run`, has files of its own.
 * @param asked the socket that the command uses
 * @param installed socket of the installed daemon, by its configuration
 * @throws Failure
 */
export function requireInstalled(asked: string, installed: string, configFile: string): void {
  if (realPath(asked) === realPath(installed)) return
  throw new Failure(
    'failed',
    `${oneLine(asked)} is not the socket of the installed edgehostd, ${oneLine(installed) || 'which has none'}; this command changes the configuration of that one, beside ${oneLine(configFile)}. Nothing was changed\nFor another daemon, write host.mode: connected and the section platform into config.d/50-platform.yaml beside its own configuration file, or remove that file, and restart it`,
  )
}

/** A path without links; as it is where nothing is there. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** @throws Failure that says what to type where the daemon does not answer */
export const readHost = (client: ThisHost['client']): Promise<EdgeHostInfo> =>
  client.get<EdgeHostInfo>(hostPath, ['metadata', 'spec', 'status'])

/** The uid of the cluster of the host; undefined where there is none. @throws Failure */
export async function readClusterUid(client: ThisHost['client']): Promise<string | undefined> {
  const reply = await client.ask({ method: 'GET', path: '/v1/edge-mgmt/cluster' })
  if (reply.status === 404) return undefined
  if (reply.status !== 200) throw toFailure(reply)
  const { metadata } = parseBody<{ readonly metadata: { readonly id?: string } }>(reply, ['metadata'])
  return metadata.id ?? ''
}

/** Connection of the host. @throws Failure */
export async function readLink(client: ThisHost['client']): Promise<PlatformLink> {
  const reply = await client.ask({ method: 'GET', path: '/v1/edge-mgmt/platform' })
  if (reply.status !== 200) throw toFailure(reply)
  return parseBody<PlatformLink>(reply, ['mode', 'registrationStatus', 'isConnected'])
}

const restartMs = 60_000

/**
 * Restarts the daemon with the files in place, and returns when it has started.
 * @param done steps done before, for the message of a failure
 * @throws Failure; the files stay in place
 */
export async function restartDaemon({ runner }: ThisHost, done: string): Promise<void> {
  const args = ['restart', 'edgehostd.service']
  const problem = await runner.run('systemctl', args, { timeoutMs: restartMs }).then(
    ({ exitCode, stderr }) =>
      exitCode === 0 ? undefined : stderr.trim() || `it ended with ${exitCode ?? 'a signal'}`,
    (error: unknown) => {
      if (!(error instanceof CommandFailed)) throw error
      return error.message
    },
  )
  if (problem !== undefined)
    throw new Failure(
      'failed',
      `${done}, but the daemon did not restart: systemctl restart edgehostd: ${problem}\nThe cause: journalctl -u edgehostd -p warning -n 20`,
    )
}
