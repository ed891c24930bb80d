import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createLock } from '../../base/lock.ts'
import { formatTime } from '../../base/time.ts'
import { uuidAt } from '../../base/uid.ts'
import type { SystemEntry } from '../../audit/own-entries.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Clock } from '../../system/clock.ts'
import { isThere, syncTree } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import type { CommandResult } from '../../system/runner.ts'
import type { ChangeSet } from '../change-set.ts'
import { bareAddress } from '../../base/subnet.ts'
import { filesOfChange } from './change.ts'
import { trialErrors } from './codes.ts'
import { openUid, progressOf, type TrialFolders } from './progress.ts'
import { isEnded, type ChangeStore, type Progress, type StoredChange, type Worked } from './store.ts'
import { touchesWay, whyUnproven, type CameBy, type LinkAddresses, type Way } from './way.ts'

export interface TrialsOptions {
  readonly store: ChangeStore
  /** Runs `network-trial` outside the sandbox of the daemon: below it a rename in /run is refused. */
  readonly run: (
    action: 'start' | 'confirm' | 'ask' | 'fail' | 'check' | 'boot',
    argument: string,
    why?: string,
  ) => Promise<CommandResult>
  /** What works of the outside now. */
  readonly worksNow: () => Promise<Worked>
  readonly folders: TrialFolders
  /** The addresses of the links of this host, as they are now. */
  readonly links: () => readonly LinkAddresses[]
  readonly record: (entry: SystemEntry) => void
  readonly clock: Clock
  readonly log: Logger
}

export interface TrialRequest {
  /** Time until the change is taken back unless it is confirmed. */
  readonly windowSeconds: number
  /** Account of the user. */
  readonly requestedBy: string
  readonly cameBy: CameBy
  /** Whether gateways or name servers change. */
  readonly changesWayOut: boolean
  /** `?confirm=platform` */
  readonly confirmBy?: 'platform' | undefined
  /** What `lastEnded` gave before the network was read by which the change was planned. */
  readonly plannedAfter: string | undefined
  /** Called before anything is changed, when others find the change open already. @throws AppError where something else is under way */
  readonly refuseBusy: () => void
}

/** Changes of the network that are taken back unless they are confirmed, whatever dies meanwhile. */
export interface Trials {
  /**
   * Arms the revert, then begins to apply a change.
   * @throws AppError NetworkChangeOpen while another one is tried, or where one has come since it was planned, which its files would take back;
   * NetworkChangeFailed where nothing was changed
   */
  start(change: ChangeSet, request: TrialRequest): Promise<{ readonly uid: string }>
  /** All changes, the newest first, as far as they are now. */
  list(): readonly StoredChange[]
  /** @throws AppError NetworkChangeOpen, with the uid of the open one */
  requireNone(): void
  /** The uid of the last change; undefined where there is none, and while one is open, whose end nobody knows. */
  lastEnded(): string | undefined
  /** @throws AppError NotFound */
  find(uid: string): StoredChange
  /** The change that is tried now, or is being confirmed or taken back. */
  open(): StoredChange | undefined
  /**
   * Keeps a change. It is on the disk when the promise resolves.
   * @throws AppError NotFound; NetworkConfirmUnproven, NetworkPlatformUnheard, NetworkChangeNotApplied or NetworkChangeDecided
   */
  confirm(uid: string, way: Way): Promise<StoredChange>
  /**
   * The platform was heard on a connection that was made after a time, monotonic milliseconds: after the apply this confirms the change that waits
   * for it.
   */
  hear(connectedSince: number): Promise<void>
  /** Whether the platform was heard since the apply of a change had ended. */
  hasHeard(uid: string): boolean
  /** Takes a change back with which something does not work; nothing where it is decided already. */
  fail(uid: string, why: string): Promise<void>
  /** Takes a change back; it is being taken back when the promise resolves. @throws AppError NotFound; NetworkChangeDecided */
  revert(uid: string): Promise<StoredChange>
  /** Finishes what a power cut left where the unit of the boot does not know the state folder, and looks at the open change again. */
  resume(): Promise<void>
  /** Looks whether the network is as before by now, where the revert of the last change had failed; nothing otherwise. */
  checkRevert(): Promise<void>
  /** Registers a listener, called when the apply of a change was seen to have ended; again by another daemon. */
  onApplied(listener: (change: StoredChange) => void): void
  /** Registers a listener, called after a change has begun, and after each change of its state. */
  onChange(listener: () => void): void
  /** Registers a listener, called after a change has ended. */
  onEnd(listener: (change: StoredChange) => void): void
  stop(): void
}

const lookEveryMs = 200

const exit = { otherIsOpen: 3, decided: 5, notOpen: 6, notApplied: 7 } as const

export function createTrials(options: TrialsOptions): Trials {
  const { store, run, folders, links, record, clock, log } = options
  const listeners: ((change: StoredChange) => void)[] = []
  const applyListeners: ((change: StoredChange) => void)[] = []
  const changeListeners: (() => void)[] = []
  const tellChanged = () => changeListeners.forEach((listener) => listener())
  /** The change since whose apply the platform was heard. */
  let heard: string | undefined
  const inTurn = createLock()
  /** When the apply of a change was seen to have ended, monotonic milliseconds: a connection that is accepted later shows that it works. */
  const seenApplied = new Map<string, number>()
  /** The change whose start has not ended; there may be no trace of it yet. */
  let starting: string | undefined
  let timer: NodeJS.Timeout | undefined

  const stored = (uid: string) => store.list().find((each) => each.uid === uid)
  /** The open one counts although it was stored as ended: its start may outlive a daemon that was killed. */
  const unended = () => stored(openUid(folders) ?? '') ?? store.list().find((each) => !isEnded(each))

  /** Reads the progress of the open change. */
  function look(): void {
    const change = unended()
    if (change === undefined) {
      clearInterval(timer)
      timer = undefined
      return
    }
    const seen = progressOf(folders, change.uid)
    if (seen === undefined && change.uid === starting) return
    const progress = seen ?? gone(change.uid)
    const isNewlyApplied = progress.appliedAt !== undefined && !seenApplied.has(change.uid)
    if (isNewlyApplied) seenApplied.set(change.uid, clock.monotonic())
    note(change, progress)
    const now = stored(change.uid)
    if (isNewlyApplied && now?.state === 'trial') for (const tell of applyListeners) tell(now)
  }

  function note(change: StoredChange, progress: Progress): void {
    const keys = Object.keys(progress) as (keyof typeof progress)[]
    if (keys.every((key) => JSON.stringify(change[key]) === JSON.stringify(progress[key]))) return
    const next = store.update(change.uid, progress)
    if (next.state !== change.state) log.info({ uid: next.uid, state: next.state }, 'a change of the network')
    if (isEnded(next)) end(next)
    tellChanged()
  }

  /** What has become of a change of which there is no trace. */
  function gone(uid: string): Progress {
    const isBegun = !existsSync(join(folders.state, `new-${uid}`))
    return {
      state: 'reverted',
      reason: isBegun ? 'reboot' : 'failed',
      endedAt: clock.now(),
      message: isBegun ? '' : 'the daemon ended before the change was begun',
    }
  }

  function end(change: StoredChange): void {
    const { uid, state, reason, message, summary } = change
    seenApplied.delete(uid)
    record({
      action: 'action',
      kind: 'network',
      resourceUid: uid,
      resourceName: summary,
      outcome: state === 'revertFailed' ? 'failed' : 'success',
      message: `The change of the network is ${ended[state]}${reason ? ` (${reason})` : ''}${message ? `: ${message}` : ''}`,
    })
    if (state === 'revertFailed')
      log.error(
        { uid, differs: message },
        'a change of the network was taken back, but the network is not as before; see: edgehostctl network changes',
      )
    for (const tell of listeners) tell(change)
  }

  function watch(): void {
    timer ??= setInterval(look, lookEveryMs).unref()
  }

  function find(uid: string): StoredChange {
    look()
    const found = stored(uid)
    if (!found) throw new AppError(generalErrors.NotFound, `there is no change of the network ${uid}`)
    return found
  }

  function refuseDecided({ uid, state }: StoredChange): never {
    throw new AppError(trialErrors.NetworkChangeDecided, `the change ${uid} is ${state}`, {
      details: { uid, state },
    })
  }

  function refuseUnapplied({ uid }: StoredChange): never {
    throw new AppError(trialErrors.NetworkChangeNotApplied, `the change ${uid} is still being applied`)
  }

  function refuseOutdated(uid: string): never {
    throw new AppError(
      trialErrors.NetworkChangeOpen,
      `the change ${uid} of the network has come since this one was planned; nothing was changed, ask for it again`,
      { details: { uid } },
    )
  }

  function requireNone(): void {
    look()
    const other = unended()?.uid ?? openUid(folders)
    if (other !== undefined) refuseOther(other)
  }

  function refuseOther(uid: string): never {
    throw otherIsOpen(uid)
  }

  /** The refusal for an exit code of the program. */
  function refuse(change: StoredChange, { exitCode, stderr }: CommandResult): never {
    look()
    const present = stored(change.uid) ?? change
    if (exitCode === exit.notApplied) refuseUnapplied(change)
    if (exitCode === exit.decided || exitCode === exit.notOpen) refuseDecided(present)
    throw new AppError(trialErrors.NetworkChangeFailed, lastLine(stderr))
  }

  return {
    start: (change, request) =>
      inTurn(async () => {
        const { windowSeconds, requestedBy, cameBy, changesWayOut, confirmBy, refuseBusy } = request
        requireNone()
        const last = store.list()[0]?.uid
        if (last !== undefined && last !== request.plannedAfter) refuseOutdated(last)
        refuseBusy()
        const worked = await options.worksNow()
        const createdAt = clock.now()
        const uid = uuidAt(createdAt)
        const folder = join(folders.state, `new-${uid}`)
        for (const [path, text] of filesOfChange(uid, change, windowSeconds)) {
          await mkdir(dirname(join(folder, path)), { recursive: true, mode: 0o700 })
          await writeFile(join(folder, path), text, { mode: 0o600 })
        }
        await syncTree(folder)
        store.add({
          uid,
          createdAt,
          deadlineAt: createdAt + windowSeconds * 1_000,
          windowSeconds,
          requestedBy,
          summary: change.summary,
          backend: change.backend,
          links: change.links,
          needsNewWay: touchesWay(change, cameBy, links()),
          needsPlatform: changesWayOut && worked.platform,
          ...(confirmBy === undefined ? {} : { confirmBy }),
          worked,
          state: 'applying',
          reason: undefined,
          message: '',
          lost: [],
          appliedAt: undefined,
          endedAt: undefined,
        })
        starting = uid
        try {
          try {
            // It may have begun while the files were written. What comes from here on finds this change.
            refuseBusy()
          } catch (error) {
            store.remove(uid)
            throw error
          }
          const started = await run('start', folder)
          if (started.exitCode === 0) return { uid }
          store.remove(uid)
          if (started.exitCode === exit.otherIsOpen) refuseOther(started.stdout.trim())
          throw new AppError(
            trialErrors.NetworkChangeFailed,
            `nothing was changed: ${lastLine(started.stderr)}`,
          )
        } finally {
          starting = undefined
          await rm(folder, { recursive: true, force: true })
          if (unended()) {
            watch()
            tellChanged()
          }
          look()
        }
      }),

    list() {
      look()
      return store.list()
    },
    requireNone,
    lastEnded() {
      look()
      return unended() === undefined && openUid(folders) === undefined ? store.list()[0]?.uid : undefined
    },
    find,
    open() {
      look()
      return unended()
    },

    async confirm(uid, way) {
      const change = find(uid)
      if (change.state === 'applying') refuseUnapplied(change)
      if (change.state !== 'trial') refuseDecided(change)
      const own = links().flatMap(({ addresses }) => addresses.map(bareAddress))
      const why = whyUnproven({ needsNewWay: change.needsNewWay, appliedAt: seenApplied.get(uid) }, way, own)
      if (why !== undefined) throw new AppError(trialErrors.NetworkConfirmUnproven, why, { details: { uid } })
      if (change.needsPlatform === true && heard !== uid && !way.isLocal)
        throw new AppError(
          trialErrors.NetworkPlatformUnheard,
          `the change ${uid} is of a gateway or of name servers, and the platform, which answered before, has not answered since`,
          { details: { uid } },
        )
      const confirmed = await run('confirm', uid)
      if (confirmed.exitCode !== 0) refuse(change, confirmed)
      return find(uid)
    },

    async hear(connectedSince) {
      look()
      const change = unended()
      const appliedAt = change && seenApplied.get(change.uid)
      if (appliedAt === undefined || change?.state !== 'trial' || connectedSince < appliedAt) return
      const { uid, confirmBy } = change
      heard = uid
      if (confirmBy === undefined) return
      const { exitCode, stderr } = await run('confirm', uid)
      if (exitCode !== 0)
        log.warn({ uid, reason: lastLine(stderr) }, 'the platform could not confirm a change of the network')
      look()
    },
    hasHeard: (uid) => heard === uid,

    async fail(uid, why) {
      const { exitCode, stderr } = await run('fail', uid, why)
      if (exitCode !== 0 && exitCode !== exit.decided && exitCode !== exit.notOpen)
        log.error(
          { uid, reason: lastLine(stderr) },
          `a change of the network could not be taken back: ${why}`,
        )
      look()
    },

    async revert(uid) {
      const change = find(uid)
      if (change.state !== 'trial' && change.state !== 'applying') refuseDecided(change)
      const reverted = await run('ask', uid)
      if (reverted.exitCode !== 0) refuse(change, reverted)
      return find(uid)
    },

    async resume() {
      const isLeft = async (name: string) => isThere(join(folders.state, name, 'uid'))
      if (openUid(folders) === undefined && ((await isLeft('commit')) || (await isLeft('open')))) {
        const { exitCode, stderr } = await run('boot', folders.state)
        if (exitCode !== 0)
          log.error(
            { reason: lastLine(stderr) },
            `a confirmed change of the network could not be written; try again with: systemctl restart edgehostd-network edgehostd`,
          )
      }
      look()
      if (unended()) watch()
      for (const name of await readdir(folders.state).catch(() => []))
        if (name.startsWith('new-') && !unended())
          await rm(join(folders.state, name), { recursive: true, force: true })
    },
    async checkRevert() {
      const [newest] = store.list()
      if (newest?.state !== 'revertFailed' || (await run('check', newest.uid)).exitCode !== 0) return
      if (store.list()[0] !== newest) return
      const message = `the network is as before since ${formatTime(clock.now())}; until then: ${newest.message}`
      store.update(newest.uid, { state: 'reverted', message })
      log.info({ uid: newest.uid, message }, 'a change of the network is taken back wholly by now')
      tellChanged()
    },
    onApplied: (listener) => void applyListeners.push(listener),
    onChange: (listener) => void changeListeners.push(listener),
    onEnd: (listener) => void listeners.push(listener),
    stop: () => clearInterval(timer),
  }
}

/** The refusal of a change while another one is open. */
export const otherIsOpen = (uid: string): AppError =>
  new AppError(
    trialErrors.NetworkChangeOpen,
    `the change ${uid} of the network is being tried; confirm it or take it back first`,
    { details: { uid } },
  )

const ended: Readonly<Record<string, string>> = {
  confirmed: 'confirmed',
  reverted: 'taken back',
  revertFailed: 'taken back, but the network is not as before',
}

const lastLine = (text: string) =>
  (text.trim().split('\n').at(-1) ?? '').replace(/^network-trial: /, '') || 'the program did not say why'
