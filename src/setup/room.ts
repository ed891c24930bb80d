// Name and time servers of a host without a cluster. Both are kept by the host itself (/etc/hostname, the folders of its time service) and set as root by
// verbs; the daemon stores neither. With a cluster the node keeps the name that it was made with, and the servers are a setting of the cluster.

import { join } from 'node:path'
import { createLock } from '../base/lock.ts'
import { AppError } from '../errors/app-error.ts'
import type { HostFiles } from '../host/files.ts'
import type { Ground, Room } from '../root/room.ts'
import { CommandFailed } from '../system/runner.ts'
import type { Verbs } from '../verbs/call.ts'
import { VerbRefused } from '../verbs/verb.ts'
import { setupErrors } from './codes.ts'
import { setupRoutes } from './routes.ts'
import { problemOfHostName } from './rules.ts'
import { readHostTime } from './time.ts'
import { setHostName, setTimeServers } from './verbs.ts'

interface SetupOptions {
  readonly verbs: Verbs
  readonly files: HostFiles
  readonly hostName: () => string
  readonly hasCluster: () => boolean
  /** Reads the facts of the host again, by which the certificate has its names. */
  readonly onChange: () => Promise<void>
}

const administrator = { role: 'admin' } as const

/** Name and time servers of this host, as other rooms use them. */
export interface Setup extends Room {
  /** Why a text cannot be the name of a host; undefined where it can. Continues the sentence that the name begins. */
  problemOfName(name: string): string | undefined
  /** Gives the host another name at once. @throws AppError HostInCluster, HostNotSet */
  setName(name: string): Promise<void>
}

/** Builds the room. */
export function createSetup({ stateDirectory }: Pick<Ground, 'stateDirectory'>, own: SetupOptions): Setup {
  const { verbs, files, hostName, hasCluster, onChange } = own
  const inTurn = createLock()

  const set = (work: () => Promise<unknown>) =>
    inTurn(async () => {
      if (hasCluster())
        throw new AppError(
          setupErrors.HostInCluster,
          'this host has a cluster: its node keeps its name, and the time servers are a setting of the cluster',
        )
      try {
        await work()
      } catch (error) {
        if (error instanceof VerbRefused || error instanceof CommandFailed)
          throw new AppError(setupErrors.HostNotSet, error.message, { cause: error })
        throw error
      }
      await onChange()
    })

  const setName = (name: string) => set(() => verbs.call(setHostName, { hostName: name }, administrator))

  return {
    problemOfName: problemOfHostName,
    setName,
    async routes(app) {
      await setupRoutes(app, {
        hostName,
        readTime: () => readHostTime(files),
        setName,
        setServers: (servers) =>
          set(() =>
            verbs.call(
              setTimeServers,
              { servers: [...servers], note: join(stateDirectory, 'host-time.json') },
              administrator,
            ),
          ),
      })
    },
  }
}
