// A reset of the host is a row with its plan and its next phase, and each phase is work of the room that has what goes. The row is written before the
// reply, and after each phase: a daemon that was killed, or a host whose power was cut, goes on with the phase that was begun, which does what is
// left of it (`ResetPart.clear`). Nothing takes a reset back. Accounts, which are of the operating system, and the audit trail stay.

import { uuidAt } from '../base/uid.ts'
import { formatTime } from '../base/time.ts'
import { AppError } from '../errors/app-error.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { Attention, Busy, BusyReason, ResetPart } from '../root/room.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { powerErrors } from './codes.ts'
import { wipeParts, type HostActions, type ResetPlan, type WipePart } from './schemas.ts'

/** What goes, in this order: what uses something goes before it. Sessions come late, so that none is left that began meanwhile. */
const resetPhases = [
  ...(['cluster', 'definitions', 'content', 'configuration', 'sessions', 'identity'] as const),
  // Last: nobody may reach the host for a while after it.
  'network',
] as const
export type ResetPhase = (typeof resetPhases)[number]

/** What a user wants of a reset. */
export interface ResetWish {
  readonly keepsContent: boolean
  readonly wipe: readonly WipePart[]
}

/** The phases of a reset. Pure. */
export const phasesOf = ({ keepsContent, wipe }: ResetWish): readonly ResetPhase[] =>
  resetPhases.filter(
    (phase) =>
      !(phase === 'content' && keepsContent) &&
      (!wipeParts.some((part) => part === phase) || wipe.some((part) => part === phase)),
  )

interface Row {
  readonly uid: string
  readonly by: string
  readonly plan: string
  readonly phase: ResetPhase | null
  readonly reason: string
  readonly requestedAt: number
  readonly endedAt: number | null
}

interface ResetOptions {
  readonly database: Pick<Database, 'sql'>
  readonly hostName: () => string
  readonly stateDirectory: string
  /** The platform that manages this host; undefined for none. */
  readonly platform: () => string | undefined
  readonly busy: Busy
  readonly parts: Readonly<Record<ResetPhase, ResetPart>>
  /** Starts the daemon anew, where its configuration or its identity has changed. */
  readonly restart: () => Promise<void>
  readonly onEvent: (event: {
    readonly reason: 'HostReset'
    readonly severity: 'Warning'
    readonly message: string
  }) => void
  readonly record: (entry: SystemEntry) => void
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Logger
}

/** A request for a reset. */
export interface ResetOrder extends ResetWish {
  readonly hostName: string | undefined
  readonly isForced: boolean
  readonly by: string
}

/** The reset of this host. */
export interface Reset {
  /** What a reset would do now. @throws AppError BadRequest */
  plan(wish: ResetWish): Promise<ResetPlan>
  /**
   * Accepts a reset; `tick` does it.
   * @returns its uid
   * @throws AppError BadRequest, Busy, PlatformLinked, ResetUnderWay
   */
  accept(order: ResetOrder): Promise<string>
  /** Does the next phase of a reset that is under way. To be called each second, not twice at a time. Never throws. */
  tick(): Promise<void>
  show(): HostActions['reset']
  attention(): readonly Attention[]
  busy(): readonly BusyReason[]
}

/** The state folder of a package, which no configuration names. */
const usualState = '/var/lib/edgehostd'
const retryMs = 5_000

/** @throws AppError BadRequest for parts that cannot go */
export function parseWipe(text: string | undefined, stateDirectory: string): readonly WipePart[] {
  const wipe = wipeParts.filter((part) => text?.split(',').includes(part))
  if (wipe.includes('configuration') && stateDirectory !== usualState)
    throw refusedField(
      'wipe',
      `has configuration, which names the state folder ${stateDirectory}: without it the daemon would not find its audit trail`,
    )
  return wipe
}

export function createReset(options: ResetOptions): Reset {
  const { database, hostName, stateDirectory, platform, busy, parts, restart } = options
  const { onEvent, record, clock, log } = options
  const { sql } = database
  let retryAt = -Infinity

  // Once: it is asked for each second.
  const select = sql.prepare(
    'SELECT uid, by, plan, phase, reason, requested_at AS requestedAt, ended_at AS endedAt FROM host_reset',
  )
  const last = () => select.get() as unknown as Row | undefined
  const open = () => {
    const row = last()
    return row && row.phase !== null ? { ...row, phase: row.phase } : undefined
  }

  const linked = () => {
    const url = platform()
    return url === undefined
      ? undefined
      : `the platform ${url} manages this host, and orders again what a reset removes`
  }

  function refuseTwice(): void {
    const under = open()
    if (under)
      throw new AppError(
        powerErrors.ResetUnderWay,
        `this host is being reset already, by ${under.by}: ${under.phase}`,
        { details: { uid: under.uid } },
      )
  }

  async function finish(wish: ResetWish, { uid, by }: Pick<Row, 'uid' | 'by'>): Promise<void> {
    const message = `this host was reset by ${by}: ${phasesOf(wish).join(', ')}${wish.keepsContent ? '; the content stayed' : ''}`
    // First: a kill in between gives a second record, and not none.
    record({ action: 'action', kind: 'host', resourceUid: uid, message })
    onEvent({ reason: 'HostReset', severity: 'Warning', message })
    sql.prepare("UPDATE host_reset SET phase = NULL, reason = '', ended_at = ?").run(clock.now())
    log.warn({ uid, by }, message)
    if (wish.wipe.some((part) => part !== 'network')) await restart()
  }

  return {
    async plan(wish) {
      const phases = phasesOf(wish)
      const removes = await Promise.all(
        phases.map(async (phase) => ({ phase, items: [...(await parts[phase].describe())] })),
      )
      const link = linked()
      return {
        hostName: hostName(),
        removes,
        stays: [
          'accounts of the operating system',
          'the audit trail',
          'the events of former clusters',
          ...(wish.wipe.includes('network') ? [] : ['the network of the host']),
          ...(wish.keepsContent ? ['the content'] : []),
          ...(wish.wipe.includes('configuration') ? [] : ['the configuration in /etc/edgehostd']),
          ...(await Promise.all(phases.map(async (phase) => (await parts[phase].stays?.()) ?? []))).flat(),
          ...(wish.wipe.includes('identity') ? [] : ['id, keys and certificate of the host']),
          ...(link === undefined ? [] : ['the link to the platform']),
        ],
        problems: [
          ...(link === undefined ? [] : [link]),
          ...busy.reasons().map(({ message }) => `this host is busy: ${message}`),
        ],
      }
    },

    async accept({ hostName: named, isForced, by, keepsContent, wipe }) {
      const name = hostName()
      if (named === undefined || named === '')
        throw refusedField(
          'hostName',
          'is missing: it has to be the name of this host, which a dry run shows',
        )
      if (named !== name)
        throw refusedField(
          'hostName',
          'is not the name of this host, which a dry run shows; nothing was done',
        )
      refuseTwice()
      const link = linked()
      if (link !== undefined && !isForced) throw new AppError(powerErrors.PlatformLinked, link)
      if (!isForced) busy.refuse('a reset')
      const wish: ResetWish = { keepsContent, wipe }
      const now = clock.now()
      const uid = uuidAt(now)
      sql
        .prepare(
          "INSERT OR REPLACE INTO host_reset (one, uid, by, plan, phase, reason, requested_at, ended_at) VALUES (1, ?, ?, ?, ?, '', ?, NULL)",
        )
        .run(uid, by, JSON.stringify(wish), phasesOf(wish)[0] ?? 'sessions', now)
      log.warn({ uid, by, stateDirectory }, `this host is being reset by ${by}`)
      return uid
    },

    async tick() {
      const under = open()
      if (!under || clock.monotonic() < retryAt) return
      const wish = JSON.parse(under.plan) as ResetWish
      try {
        if (!(await parts[under.phase].clear())) return
        log.info({ uid: under.uid, phase: under.phase }, 'a phase of the reset is done')
        const phases = phasesOf(wish)
        const next = phases[phases.indexOf(under.phase) + 1]
        if (next === undefined) await finish(wish, under)
        else sql.prepare("UPDATE host_reset SET phase = ?, reason = ''").run(next)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        retryAt = clock.monotonic() + retryMs
        if (reason === under.reason) return
        log.error(
          { err: error, uid: under.uid, phase: under.phase },
          'a phase of the reset failed; it is tried again',
        )
        sql.prepare('UPDATE host_reset SET reason = ?').run(reason)
      }
    },

    show() {
      const row = last()
      return (
        row && {
          uid: row.uid,
          by: row.by,
          creationTimestamp: formatTime(row.requestedAt),
          ...(row.phase === null ? {} : { phase: row.phase }),
          ...(row.reason === '' ? {} : { reason: row.reason }),
          ...(row.endedAt === null ? {} : { endTimestamp: formatTime(row.endedAt) }),
        }
      )
    },

    attention() {
      const under = open()
      if (!under) return []
      return [
        {
          code: 'HostResetting',
          severity: under.reason === '' ? 'warning' : 'error',
          message: `this host is being reset by ${under.by}: ${under.phase}${under.reason === '' ? '' : `: ${under.reason}`}`,
          command: 'edgehostctl host stops',
          since: under.requestedAt,
        },
      ]
    },

    busy() {
      const under = open()
      return under
        ? [{ reason: 'Reset', message: `this host is being reset: ${under.phase}`, uid: under.uid }]
        : []
    },
  }
}
