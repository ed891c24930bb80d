// A stop of the host is a row from the moment it is accepted: `planned` waits for its time over restarts of the daemon and boots of the host, `going`
// is done again by a daemon that was killed in between, and the next boot makes `done` of it and says how long the host was away. The reply to
// the request comes first: the route calls `go` when it has left.
//
// Pods get their time in one of two ways. A kubelet that holds a delaying lock of logind (`shutdownGracePeriod`, `cluster/engine/kubeadm-config.ts`)
// ends them itself, also where another program stops the host. Where it holds none, as on a host without logind, the node is drained before.

import { uuidAt } from '../base/uid.ts'
import { formatTime, parseTime } from '../base/time.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { Attention, Busy, BusyReason } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import type { Verbs } from '../verbs/call.ts'
import { powerErrors } from './codes.ts'
import { mostDaysAhead, type HostActions, type StopAction } from './schemas.ts'
import type { Back, BootRecord, StopRecord, StopStore } from './stop-store.ts'
import { stopHost } from './verbs.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A planned stop waits so long for a host that is busy, or for a daemon that does not run at its time. */
const mostLateMs = hourMs
/** A host that still runs so long after it was told to go does not go. */
const mostGoingMs = 15 * minuteMs
/** Time for which a boot is shown to an operator. */
const shownMs = { orderly: hourMs, other: 24 * hourMs } as const

/** An event of the host, for the cluster and the platform. */
export interface PowerEvent {
  readonly reason: 'HostStopping' | 'HostStopFailed' | 'HostBack' | 'HostReset'
  readonly severity: 'Normal' | 'Warning'
  readonly message: string
}

/** The cluster of this host before and after a stop. */
export interface ClusterOfStops {
  /** Ends the pods, each with its grace period; without a cluster, or where its API does not answer, nothing. Never throws. */
  drain(): Promise<void>
  /** Takes back what `drain` did to the node, and removes the remains of pods that the stop has ended. @returns whether there is nothing left to do */
  settle(): Promise<boolean>
}

interface StopsOptions {
  readonly store: StopStore
  readonly busy: Busy
  readonly verbs: Verbs
  /** Runs programs within the sandbox of the daemon. */
  readonly runner: CommandRunner
  readonly cluster: ClusterOfStops
  /** Ends every session. @param reason for the trail */
  readonly endSessions: (reason: string) => void
  readonly onEvent: (event: PowerEvent) => void
  readonly record: (entry: SystemEntry) => void
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

/** A request for a stop. */
export interface StopOrder {
  readonly action: StopAction
  readonly message: string
  readonly isForced: boolean
  readonly by: string
  /** RFC 3339; undefined: at once. */
  readonly at: string | undefined
}

/** Reboots and shutdowns of this host. */
export interface Stops {
  /**
   * Accepts a stop. One that is to go at once goes with `go`, after the reply.
   * @throws AppError Busy, StopUnderWay, StopPlanned, BadRequest
   */
  accept(order: StopOrder): Promise<StopRecord>
  /** Stops the host for the stop that is under way; without one, or a second time: nothing. Never throws. */
  go(): Promise<void>
  /** @throws AppError NotFound, StopUnderWay */
  cancel(uid: string): StopRecord
  /** Does a planned stop whose time has come. To be called each second. */
  tick(): Promise<void>
  /** Notes the start of the daemon in a boot of the host. */
  begin(bootId: string): void
  /** Notes that the daemon ends in order. */
  end(): void
  show(): HostActions
  attention(): readonly Attention[]
  busy(): readonly BusyReason[]
}

const doing = { reboot: 'is being rebooted', shutdown: 'is being shut down' } as const
const noun = { reboot: 'a reboot', shutdown: 'a shutdown' } as const

const because = ({ by, message }: Pick<StopRecord, 'by' | 'message'>) =>
  `by ${by}${message === '' ? '' : `: ${message}`}`

/**
 * How the host came back. Pure.
 * @param stop the stop that was under way
 * @param before the boot before, as it was noted last
 */
export function backOf(
  stop: Pick<StopRecord, 'action' | 'by' | 'message' | 'wentAt' | 'requestedAt'> | undefined,
  { endedAt }: Pick<BootRecord, 'endedAt'>,
  now: number,
): Back {
  const since = stop ? (stop.wentAt ?? stop.requestedAt) : endedAt
  const seconds = since === null ? -1 : Math.round((now - since) / 1_000)
  // A clock that was set back in between says nothing.
  const after = seconds < 0 ? {} : { afterSeconds: seconds }
  const back = seconds < 0 ? 'this host is back' : `this host is back after ${seconds} s`
  if (stop) return { message: `${back}: ${stop.action} ${because(stop)}`, isOrderly: true, ...after }
  if (endedAt !== null)
    return {
      message: `${back}: it was stopped in order, not by edgehostd; see: journalctl --boot=-1`,
      isOrderly: true,
      ...after,
    }
  return {
    message:
      'this host was started again without an orderly stop, as after a power cut, a reset or a crash; see: journalctl --boot=-1',
    isOrderly: false,
  }
}

/** @throws AppError BadRequest for a time that is no time, over, or too far away */
export function plannedTime(at: string, now: number): number {
  const time = parseTime(at)
  if (time === undefined) throw refusedField('at', 'is no time of RFC 3339, as 2027-01-31T02:00:00Z')
  if (time <= now) throw refusedField('at', `is over; the clock of this host says ${formatTime(now)}`)
  if (time > now + mostDaysAhead * 24 * hourMs)
    throw refusedField(
      'at',
      `is more than ${mostDaysAhead} days away; the clock of this host says ${formatTime(now)}`,
    )
  return time
}

/** Whether the kubelet holds a delaying lock, so that it ends the pods itself. @param shown by `systemd-inhibit --list --no-legend` */
export const kubeletDelays = (shown: string): boolean =>
  shown.split('\n').some((line) => /^kubelet\s.*\bshutdown\b.*\sdelay\s*$/.test(line))

export function createStops(options: StopsOptions): Stops {
  const { store, busy, verbs, runner, cluster, endSessions, onEvent, record, clock, log } = options
  let isGoing = false
  /** What a planned stop whose time has come waits for. */
  let waitsFor = ''

  function refuseWhileGoing(): void {
    const open = store.open()
    if (open?.state === 'going')
      throw new AppError(
        powerErrors.StopUnderWay,
        `this host ${doing[open.action]} already, ${because(open)}`,
        { details: { uid: open.uid } },
      )
  }

  /** The stop does not happen. */
  function fail({ uid, action, by, message }: StopRecord, reason: string): void {
    store.change(uid, { state: 'failed', reason })
    waitsFor = ''
    const text = `${noun[action]} of this host was not done: ${reason}`
    log.error({ uid, by, message }, text)
    record({ action: 'action', kind: 'host', resourceUid: uid, message: text, outcome: 'failed' })
    onEvent({ reason: 'HostStopFailed', severity: 'Warning', message: text })
  }

  async function endPods(): Promise<void> {
    const locks = await runner
      .run('systemd-inhibit', ['--list', '--no-legend', '--no-pager'], { timeoutMs: 10_000 })
      .catch(() => undefined)
    if (locks?.exitCode === 0 && kubeletDelays(locks.stdout)) return
    await cluster.drain()
  }

  async function stop(going: StopRecord): Promise<void> {
    const { uid, action, message, isForced } = going
    const text = `this host ${doing[action]} ${because(going)}`
    log.warn({ uid, action, by: going.by, message }, text)
    onEvent({ reason: 'HostStopping', severity: 'Normal', message: text })
    endSessions(action === 'reboot' ? 'the host is rebooted' : 'the host is shut down')
    await endPods()
    store.change(uid, { wentAt: clock.now() })
    await verbs.call(
      stopHost,
      { action, message: `edgehostd: ${action} ${because(going)}`, isForced },
      'service',
    )
  }

  /** Whether systemd stops the host. */
  async function isEnding(): Promise<boolean> {
    const state = await runner
      .run('systemctl', ['is-system-running'], { timeoutMs: 10_000 })
      .catch(() => undefined)
    return state?.stdout.trim() === 'stopping'
  }

  async function go(): Promise<void> {
    const going = store.open()
    if (isGoing || going?.state !== 'going') return
    isGoing = true
    try {
      await stop(going)
    } catch (error) {
      // Without the system bus the unit of the verb is cut off by the stop that it has asked for.
      if (await isEnding()) return
      isGoing = false
      fail(going, error instanceof Error ? error.message : String(error))
      await cluster.settle().catch(() => false)
    }
  }

  return {
    go,

    async accept({ action, message, isForced, by, at }) {
      const now = clock.now()
      const plannedAt = at === undefined ? null : plannedTime(at, now)
      refuseWhileGoing()
      if (plannedAt === null && !isForced) busy.refuse(noun[action])
      const open = store.open()
      if (plannedAt !== null && open)
        throw new AppError(
          powerErrors.StopPlanned,
          `${noun[open.action]} of this host is planned for ${formatTime(open.plannedAt ?? now)}, ${because(open)}; cancel it first`,
          { details: { uid: open.uid } },
        )
      const stop: StopRecord = {
        uid: uuidAt(now),
        action,
        state: plannedAt === null ? 'going' : 'planned',
        message,
        by,
        isForced,
        requestedAt: now,
        plannedAt,
        wentAt: null,
        reason: '',
      }
      store.add(stop)
      return stop
    },

    cancel(uid) {
      const open = store.open()
      if (open?.uid !== uid)
        throw new AppError(generalErrors.NotFound, `no stop ${uid} of this host is planned`)
      if (open.state === 'going')
        throw new AppError(powerErrors.StopUnderWay, `this host ${doing[open.action]} already`, {
          details: { uid },
        })
      store.remove(uid)
      waitsFor = ''
      return open
    },

    async tick() {
      const open = store.open()
      if (!open) return
      const { uid, state, plannedAt, wentAt, isForced } = open
      const now = clock.now()
      if (state === 'going') {
        if (wentAt !== null && now - wentAt > mostGoingMs) {
          isGoing = false
          fail(
            open,
            `the host still runs ${mostGoingMs / minuteMs} min after it was told to go; see: systemctl list-jobs`,
          )
          await cluster.settle().catch(() => false)
        }
        return
      }
      if (plannedAt === null || now < plannedAt) return
      if (now - plannedAt > mostLateMs) {
        fail(
          open,
          waitsFor === ''
            ? 'edgehostd did not run at its time, and it is over for more than an hour'
            : `the host was busy for an hour: ${waitsFor}`,
        )
        return
      }
      const reasons = isForced ? [] : busy.reasons()
      waitsFor = reasons.map(({ message }) => message).join('; ')
      // It may have been cancelled meanwhile.
      if (waitsFor !== '' || store.open()?.uid !== uid) return
      store.change(uid, { state: 'going' })
      await go()
    },

    begin(bootId) {
      const known = store.boot()
      const now = clock.now()
      if (known?.bootId === bootId) {
        store.endBoot(null)
        // The daemon was killed between the acceptance and the stop.
        void go()
        return
      }
      const open = store.open()
      const going = open?.state === 'going' ? open : undefined
      const back = known ? backOf(going, known, now) : null
      if (going) store.change(going.uid, { state: 'done' })
      store.beginBoot({ bootId, beganAt: now, back })
      if (!back) return
      const { message, isOrderly } = back
      if (isOrderly) log.info({ uid: going?.uid }, message)
      else log.warn(message)
      record({ action: 'activity', kind: 'host', resourceUid: going?.uid ?? '', message })
      onEvent({ reason: 'HostBack', severity: isOrderly ? 'Normal' : 'Warning', message })
    },

    end: () => store.endBoot(clock.now()),

    show() {
      const [open, last, boot] = [store.open(), store.last(), store.boot()]
      return {
        items: open ? [viewOf(open, waitsFor)] : [],
        ...(last ? { last: viewOf(last, '') } : {}),
        ...(boot?.back
          ? {
              boot: {
                startTimestamp: formatTime(boot.beganAt),
                message: boot.back.message,
                isOrderly: boot.back.isOrderly,
                ...(boot.back.afterSeconds === undefined ? {} : { backAfterSeconds: boot.back.afterSeconds }),
              },
            }
          : {}),
      }
    },

    attention: () =>
      attentionOf({ open: store.open(), last: store.last(), boot: store.boot(), waitsFor, now: clock.now() }),

    busy() {
      const open = store.open()
      return open?.state === 'going'
        ? [{ reason: 'HostStopping', message: `this host ${doing[open.action]}`, uid: open.uid }]
        : []
    },
  }
}

const viewOf = (stop: StopRecord, waitsFor: string): HostActions['items'][number] => {
  const reason = stop.reason || waitsFor
  return {
    uid: stop.uid,
    action: stop.action,
    state: stop.state,
    message: stop.message,
    ...(reason === '' ? {} : { reason }),
    isForced: stop.isForced,
    by: stop.by,
    creationTimestamp: formatTime(stop.requestedAt),
    ...(stop.plannedAt === null ? {} : { atTimestamp: formatTime(stop.plannedAt) }),
  }
}

interface AttentionInput {
  readonly open: StopRecord | undefined
  readonly last: StopRecord | undefined
  readonly boot: BootRecord | undefined
  readonly waitsFor: string
  readonly now: number
}

/** What an operator has to know of stops and of the present boot. Pure. */
export function attentionOf({ open, last, boot, waitsFor, now }: AttentionInput): readonly Attention[] {
  const command = 'edgehostctl host stops'
  const items: Attention[] = []
  if (open?.state === 'going')
    items.push({
      code: 'HostStopping',
      severity: 'warning',
      message: `this host ${doing[open.action]} ${because(open)}`,
      command,
      since: open.requestedAt,
    })
  if (open?.state === 'planned')
    items.push({
      code: 'HostStopPlanned',
      severity: 'info',
      message: `${noun[open.action]} of this host is planned for ${formatTime(open.plannedAt ?? now)} ${because(open)}${waitsFor === '' ? '' : `; it waits: ${waitsFor}`}`,
      command,
      since: open.requestedAt,
    })
  if (last?.state === 'failed' && now - last.requestedAt < (mostDaysAhead + 1) * 24 * hourMs)
    items.push({
      code: 'HostStopFailed',
      severity: 'error',
      message: `${noun[last.action]} of this host was not done: ${last.reason}`,
      command,
      since: last.plannedAt ?? last.requestedAt,
    })
  if (boot?.back) {
    const { message, isOrderly } = boot.back
    if (now - boot.beganAt < (isOrderly ? shownMs.orderly : shownMs.other))
      items.push({
        code: 'HostBack',
        severity: isOrderly ? 'info' : 'warning',
        message,
        command,
        since: boot.beganAt,
      })
  }
  return items
}
