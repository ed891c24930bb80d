// A change of the network is a trial (docs/network.md): `trials.ts` hands it to the shell program `network-trial`
// (`systemd/network-trial`), which arms its revert before it changes anything, and needs neither this daemon nor Node from then on. The daemon
// stores what the program says about it (`progress.ts`, `store.ts`), and decides who may confirm (`way.ts`).

import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { formatTime } from '../../base/time.ts'
import type { Attention, Ground, Room } from '../../root/room.ts'
import type { Verbs } from '../../verbs/call.ts'
import { openChangeStore, type StoredChange } from './store.ts'
import { changeRoutes, type ChangeRoutesOptions } from './routes-changes.ts'
import { createTrials, type Trials } from './trials.ts'
import { decideNetworkChange, finishNetworkChanges, tryNetworkChange } from './verbs.ts'
import type { LinkAddresses } from './way.ts'

/** The routes that change something are for administrators alone. */
const administrator = { role: 'admin' } as const

interface TrialRoomOptions extends Pick<ChangeRoutesOptions, 'acceptedAt'> {
  readonly verbs: Verbs
  /** Folder of the open change; gone after a boot. */
  readonly runtimeFolder: string
}

/** Changes of the network of this host. */
export interface TrialRoom extends Room {
  readonly trials: Pick<Trials, 'start' | 'open' | 'onEnd'>
  /** For the console: until when the open change is tried, and how it is kept; undefined without one that can be confirmed. */
  consoleLine(): string | undefined
  onChange(listener: () => void): void
}

/** Builds the room. */
export function createTrialRoom(ground: Ground, own: TrialRoomOptions): TrialRoom {
  const { database, stateDirectory } = ground
  const { verbs } = own
  const trials = createTrials({
    ...ground,
    run: (action, argument) => {
      if (action === 'start') return verbs.call(tryNetworkChange, { folder: argument }, administrator)
      if (action === 'boot') return verbs.call(finishNetworkChanges, { folder: argument }, 'service')
      return verbs.call(decideNetworkChange, { action, uid: argument }, administrator)
    },
    store: openChangeStore(database),
    folders: { runtime: own.runtimeFolder, state: join(stateDirectory, 'network') },
    links: readAddresses,
  })
  return {
    trials,
    consoleLine: () => consoleLineOf(trials.list()),
    onChange: trials.onState,
    async routes(app) {
      await changeRoutes(app, { ...own, trials })
    },
    start: trials.resume,
    stop: trials.stop,
    checks: [{ name: 'network', kind: 'note', holds: () => !isBroken(trials.list()) }],
    attention: () => attentionOf(trials.list()),
    busy() {
      const open = trials.open()
      return open === undefined
        ? []
        : [
            {
              reason: 'NetworkChange',
              message:
                'a change of the network is being tried; confirm it or take it back first: edgehostctl network changes',
            },
          ]
    },
  }
}

/** The open change, for someone who stands before the host and sees no other way to it. Pure. */
export function consoleLineOf([newest]: readonly Pick<StoredChange, 'uid' | 'state' | 'deadlineAt'>[]):
  string | undefined {
  if (newest === undefined || (newest.state !== 'applying' && newest.state !== 'trial')) return undefined
  return `a change is taken back at ${formatTime(newest.deadlineAt)} unless as root:\n           edgehostctl network confirm ${newest.uid}`
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
