import { requireInterfaceName } from './routes.ts'
import { isOtherThanTrial, windowOf, type NetworkWritesOptions } from './routes-writes.ts'
import type { NicRequest } from './schemas.ts'
import type { NetworkReading } from './links/links.ts'
import type { Planner } from './planner.ts'
import type { Trials, TrialRequest } from './trial/trials.ts'
import { readNic, type Problem } from './wanted.ts'
import { defaultRoutesOf, shownAddress, typeOf } from './wire.ts'

interface LinksOptions {
  readonly read: () => Promise<NetworkReading>
  readonly planner: Planner
  readonly trials: Pick<Trials, 'start' | 'open' | 'lastEnded'>
  readonly busy: NetworkWritesOptions['busy']
  readonly shortestWindowSeconds: number
}

/** The links of a host as its user data names them: interfaces by name, and one change at a time, which is a trial. */
export interface LinksByName {
  /** The configured interfaces, as they are in force. @throws AppError */
  show(): Promise<Readonly<Record<string, LinkInForce>>>
  open(): { readonly uid: string; readonly summary: string; readonly state: string } | undefined
  /**
   * Judges a change of an interface. The name of a link that cannot be one is a problem too.
   * @returns all problems, and how to begin it; nothing to begin where it is configured so already
   */
  judge(
    name: string,
    wanted: NicRequest,
    how: Pick<TrialRequest, 'requestedBy' | 'cameBy'>,
  ): Promise<{ readonly problems: readonly Problem[]; readonly begin?: () => Promise<string> }>
}

interface LinkInForce {
  readonly type: 'static' | 'dhcp'
  readonly ipAddress?: string
  readonly gateway?: string
  readonly nameserver: string[]
}

/** Builds it on the planner and the trials of the room. */
export function createLinksByName(options: LinksOptions): LinksByName {
  const { read, planner, trials, busy, shortestWindowSeconds } = options
  return {
    async show() {
      const { links } = await read()
      return Object.fromEntries(
        links.flatMap((link): [string, LinkInForce][] => {
          const type = typeOf(link)
          if (type === 'none') return []
          const own = shownAddress(link)
          const [route] = defaultRoutesOf(link)
          return [
            [
              link.name,
              {
                type,
                ...(own === undefined ? {} : { ipAddress: `${own.address}/${own.prefixLength}` }),
                ...(route?.gateway === undefined ? {} : { gateway: route.gateway }),
                nameserver: [...link.nameservers],
              },
            ],
          ]
        }),
      )
    },
    open() {
      const found = trials.open()
      return found && { uid: found.uid, summary: found.summary, state: found.state }
    },
    async judge(name, wanted, how) {
      requireInterfaceName(name)
      const plannedAfter = trials.lastEnded()
      const { problems, change, changesWayOut } = await planner.prepare(readNic(name, wanted), false)
      if (problems.length > 0 || change === undefined) return { problems }
      const windowSeconds = windowOf(change, undefined, shortestWindowSeconds)
      return {
        problems,
        begin: async () => {
          const refuseBusy = () => busy.refuse('a change of the network', isOtherThanTrial)
          const request = { ...how, windowSeconds, changesWayOut, plannedAfter, refuseBusy }
          return (await trials.start(change, request)).uid
        },
      }
    },
  }
}
