import { AppError } from '../../errors/app-error.ts'
import { readAuthorities } from '../../outgoing/authorities.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { CloudsSettings } from '../config.ts'
import type { MachineProvider, MachineRead } from '../machines/provider.ts'
import { createCloudHttp } from './cloud-http.ts'
import { createKeystone, type CloudCredentials } from './keystone.ts'
import { readPorts, type Port } from './neutron.ts'
import { readMachines } from './nova.ts'
import { TokenRefused } from './pages.ts'

const noPorts: ReadonlyMap<string, readonly Port[]> = new Map()

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

  // One list after the other: a read that fails leaves no other one, and a page is made machines as it comes.
  async function read({ credentials, tags }: CloudPool, { signal, hold }: MachineRead) {
    const session = await keystone.session(credentials)
    const { network } = session
    let portBytes = 0
    const ports =
      network === undefined
        ? noPorts
        : await readPorts(
            http,
            { ...session, network },
            { signal, hold: (bytes) => hold((portBytes = bytes)) },
          )
    const pool = { session, tags, ports }
    return readMachines(http, pool, { signal, hold: (bytes) => hold(portBytes + bytes) })
  }

  return {
    validate: keystone.check,
    async machines(pool, wanted) {
      try {
        return await read(pool, wanted)
      } catch (error) {
        if (!(error instanceof TokenRefused)) throw error
      }
      keystone.forget(pool.credentials)
      return read(pool, wanted).catch((error: unknown) => {
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
