// A change of the network is a trial (docs/network.md): `trials.ts` hands it to the shell program `network-trial`
// (`systemd/network-trial`), which arms its revert before it changes anything, and needs neither this daemon nor Node from then on. The daemon
// stores what the program says about it (`progress.ts`, `store.ts`), and decides who may confirm (`way.ts`).

import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLinkLocal } from '../../base/address.ts'
import { bareAddress } from '../../base/subnet.ts'
import { formatTime } from '../../base/time.ts'
import type { Attention, Ground, ResetPart, Room } from '../../root/room.ts'
import type { Verbs } from '../../verbs/call.ts'
import { createNetworkResetPart } from './reset-part.ts'
import { openChangeStore, type StoredChange } from './store.ts'
import { changeRoutes, changeView, type ChangeRoutesOptions } from './routes-changes.ts'
import { createTrials, type Trials } from './trials.ts'
import {
  checkNetworkRevert,
  decideNetworkChange,
  failNetworkChange,
  finishNetworkChanges,
  tryNetworkChange,
} from './verbs.ts'
import { watchOutside, worksNow, type Outside } from './outside.ts'
import type { LinkAddresses } from './way.ts'

/** The routes that change something are for administrators alone. */
const administrator = { role: 'admin' } as const

interface TrialRoomOptions extends Pick<ChangeRoutesOptions, 'acceptedAt'> {
  readonly verbs: Verbs
  readonly outside: Outside
  /** Folder of the open change; gone after a boot. */
  readonly runtimeFolder: string
}

/** A change that is taken back unless it is confirmed. */
interface TriedChange extends Pick<StoredChange, 'uid' | 'summary' | 'deadlineAt'> {
  /** Addresses that its links have now. */
  readonly addresses: readonly string[]
}

/** Changes of the network of this host. */
export interface TrialRoom extends Room {
  readonly trials: Pick<Trials, 'start' | 'open' | 'lastEnded' | 'requireNone' | 'onChange' | 'onEnd'>
  readonly resetPart: ResetPart
  /** The change that is being tried, for the console of the host. */
  tried(): TriedChange | undefined
}

/** Builds the room. */
export function createTrialRoom(ground: Ground, own: TrialRoomOptions): TrialRoom {
  const { database, stateDirectory } = ground
  const { verbs } = own
  const trials = createTrials({
    ...ground,
    worksNow: () => worksNow(own.outside),
    run: (action, argument, why = '') => {
      if (action === 'start') return verbs.call(tryNetworkChange, { folder: argument }, administrator)
      if (action === 'fail') return verbs.call(failNetworkChange, { uid: argument, why }, 'service')
      if (action === 'check') return verbs.call(checkNetworkRevert, { uid: argument }, 'service')
      if (action === 'boot') return verbs.call(finishNetworkChanges, { folder: argument }, 'service')
      return verbs.call(decideNetworkChange, { action, uid: argument }, administrator)
    },
    store: openChangeStore(database),
    folders: { runtime: own.runtimeFolder, state: join(stateDirectory, 'network') },
    links: readAddresses,
  })
  watchOutside({ ...ground, ...own, trials, pause: (ms) => sleep(ms, undefined, { ref: false }) })
  return {
    trials,
    resetPart: createNetworkResetPart({ verbs, trials, stateFolder: join(stateDirectory, 'network') }),
    async routes(app) {
      await changeRoutes(app, { ...own, trials })
    },
    tried() {
      const open = trials.open()
      if (open?.state !== 'applying' && open?.state !== 'trial') return undefined
      const { uid, summary, deadlineAt, links } = open
      const own = readAddresses().filter(({ link }) => links.includes(link))
      const addresses = own
        .flatMap((each) => each.addresses.map(bareAddress))
        .filter((each) => !isLinkLocal(each))
      return { uid, summary, deadlineAt, addresses }
    },
    start: trials.resume,
    stop: trials.stop,
    jobs: [
      {
        name: 'network revert',
        schedule: '*/20 * * * * *',
        stuckAfterMs: 120_000,
        run: trials.checkRevert,
      },
    ],
    checks: [{ name: 'network', kind: 'note', holds: () => !isBroken(trials.list()) }],
    states: [
      {
        type: 'network',
        access: 'viewer',
        paths: ['/v1/edge-mgmt/network/changes', '/v1/edge-mgmt/edgehosts/current/attention'],
        read() {
          const [newest] = trials.list()
          return newest && changeView(newest)
        },
      },
    ],
    attention: () => attentionOf(trials.list()),
    busy() {
      const open = trials.open()
      return open === undefined
        ? []
        : [
            {
              reason: 'NetworkChange',
              message: `the change ${open.uid} of the network is being tried (${open.summary}); keep it or take it back first: edgehostctl network confirm ${open.uid}, or edgehostctl network revert ${open.uid}`,
              uid: open.uid,
            },
          ]
    },
  }
}

/** Whether the last change that was decided has left another network than there was before. */
const isBroken = (changes: readonly StoredChange[]) => changes[0]?.state === 'revertFailed'

/** What an operator has to know of the changes, the newest first. Pure. */
export function attentionOf(changes: readonly StoredChange[]): Attention[] {
  const [newest] = changes
  if (newest === undefined) return []
  const { uid, state, summary, message, deadlineAt, createdAt, endedAt } = newest
  const command = 'edgehostctl network changes'
  if (state === 'revertFailed')
    return [
      {
        code: 'NetworkRevertFailed',
        severity: 'error',
        message: `the change of the network was taken back (${summary}), but the network is not as before: ${message}`,
        command,
        ...(endedAt === undefined ? {} : { since: endedAt }),
      },
    ]
  if (state === 'applying' || state === 'trial')
    return [
      {
        code: 'NetworkChangeOpen',
        severity: 'info',
        message: `a change of the network is being tried (${summary}), and is taken back at ${formatTime(deadlineAt)}`,
        command: `edgehostctl network confirm ${uid}`,
        since: createdAt,
      },
    ]
  if (state === 'confirming')
    return [
      {
        code: 'NetworkChangeNotKept',
        severity: 'warning',
        message: `a confirmed change of the network (${summary}) is not written to its files yet; the next boot does it`,
        command: 'df -h / /etc /usr/local',
        since: createdAt,
      },
    ]
  return []
}

function readAddresses(): LinkAddresses[] {
  return Object.entries(networkInterfaces()).map(([link, addresses = []]) => ({
    link,
    addresses: addresses.flatMap(({ cidr, internal }) => (cidr === null || internal ? [] : [cidr])),
  }))
}
