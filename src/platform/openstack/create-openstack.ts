import { AppError } from '../../errors/app-error.ts'
import { readAuthorities } from '../../outgoing/authorities.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { CloudsSettings } from '../config.ts'
import type { MachineProvider } from '../machines/provider.ts'
import { createCloudHttp } from './cloud-http.ts'
import { createKeystone, type CloudCredentials } from './keystone.ts'
import { readPorts } from './neutron.ts'
import { readServers, TokenRefused } from './nova.ts'
import { toMachine } from './to-machine.ts'

/** The servers that an account sees and that have all the tags. */
export interface CloudPool {
  readonly credentials: CloudCredentials
  readonly tags: readonly string[]
}

/** The cloud of the configuration. */
export interface OpenStack extends MachineProvider<CloudCredentials, CloudPool> {
  /** Closes the connections. */
  close(): void
}

/**
 * @returns undefined where the configuration names no cloud
 * @throws Error for a file of authorities that cannot be read
 */
export async function createOpenStack(
  settings: CloudsSettings['vendor'],
  clock: Pick<Clock, 'monotonic'>,
): Promise<OpenStack | undefined> {
  const { authUrl, caFile } = settings
  if (authUrl === undefined) return undefined
  const ca = caFile === undefined ? undefined : await readAuthorities('clouds.vendor.caFile', caFile)
  const http = createCloudHttp(ca === undefined ? {} : { ca })
  const keystone = createKeystone({ settings: { ...settings, authUrl }, http, clock })

  async function read({ credentials, tags }: CloudPool, signal: AbortSignal) {
    const session = await keystone.session(credentials, signal)
    const { network } = session
    const [servers, ports] = await Promise.all([
      readServers(http, session, tags, signal),
      network === undefined ? undefined : readPorts(http, { ...session, network }, signal),
    ])
    return servers.map((server) => toMachine(server, ports?.get(String(server.id)) ?? []))
  }

  return {
    validate: keystone.check,
    async machines(pool, signal) {
      try {
        return await read(pool, signal)
      } catch (error) {
        if (!(error instanceof TokenRefused)) throw error
      }
      keystone.forget(pool.credentials)
      return read(pool, signal).catch((error: unknown) => {
        if (!(error instanceof TokenRefused)) throw error
        throw new AppError(
          platformErrors.CloudCredentialsRefused,
          'the cloud refuses the token that it has given',
        )
      })
    },
    close: http.close,
  }
}
