// The logs of this host: the journal of its units, read by journalctl within the sandbox of the daemon, where root may read it, and the output of the
// steps of the cluster, which are files (`system/lasting`). Masked as the error logs are: what looks like a secret, sensitive values of the cluster,
// and private keys that are printed line by line.

import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { masked, maskShapes } from '../base/mask.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import {
  componentOf,
  createKeyMask,
  maskCutKeys,
  messageOf,
  priorities,
  priorityOf,
  textOf,
  type JournalFields,
} from '../host/journal.ts'
import type { Clock } from '../system/clock.ts'
import { readJsonFile, sizeOf } from '../system/files.ts'
import { runFiles, type RunOrder } from '../system/lasting/run-files.ts'
import { readLastLines } from '../system/regular-file.ts'
import { CommandFailed, type CommandStreamer } from '../system/runner.ts'
import { diagnosisErrors } from './codes.ts'
import { logUnits, type LogEntry, type LogUnit } from './schemas.ts'

export interface LogQuestion {
  readonly units: readonly LogUnit[]
  /** Milliseconds since 1970. */
  readonly since?: number | undefined
  /** Only entries of this number of `priorities` and lower ones. */
  readonly priority: number
  /** Most entries. */
  readonly lines: number
}

export interface Logs {
  /**
   * The last entries, the newest last.
   * @returns also the time before which the journal was not searched, where that was too much
   * @throws AppError NotReady when the journal cannot be read
   */
  read(
    question: LogQuestion,
    signal: AbortSignal,
  ): Promise<{ readonly entries: readonly LogEntry[]; readonly searchedSince?: number }>
  /**
   * Passes on entries as they come, after the last ones.
   * @param after the cursor of the last entry that was received, instead of the last ones
   * @throws AppError NotReady
   */
  follow(
    question: LogQuestion,
    onEntry: (entry: LogEntry) => void,
    signal: AbortSignal,
    after?: string,
  ): Promise<void>
  /** Takes one of four places of followers. @returns gives it back @throws AppError DiagnosisBusy */
  takePlace(): () => void
}

export interface LogsOptions {
  readonly streamer: CommandStreamer
  /** Masks the sensitive values of the cluster. */
  readonly hide: () => (text: string) => string
  /** Time since which lines of kubelet and containerd are of the cluster that `hide` knows; 0 for all. */
  readonly clusterSince: () => number
  /** Folder of the runs of the steps. */
  readonly steps: string
  readonly clock: Clock
}

/** Units of systemd by the names of the API. Lines of `ofCluster` quote values that are known only while the cluster is there. */
const unitsOf: Readonly<Record<Exclude<LogUnit, 'kernel' | 'steps'>, readonly string[]>> = {
  edgehostd: ['edgehostd.service'],
  kubelet: ['kubelet.service'],
  containerd: ['containerd.service', 'edgehostd-containerd.service'],
}
const ofCluster: ReadonlySet<string> = new Set(['kubelet', 'edgehostd-containerd'])
const outputFields = 'MESSAGE,PRIORITY,UNIT,_SYSTEMD_UNIT,SYSLOG_IDENTIFIER,_TRANSPORT,_PID'

const followers = 4
const searchMs = 10_000
const longestFollowMs = 86_400_000
const stepBytes = 262_144
const stepPauseMs = 1_000
const firstOfFollower = 10

interface Masked {
  readonly source: string
  readonly entry: LogEntry
}

export function createLogs({ streamer, hide, clusterSince, steps, clock }: LogsOptions): Logs {
  let following = 0

  /** @param machine only entries of this machine; empty for all that the journal has */
  const optionsOf = ({ units, since }: LogQuestion, machine = ''): string[] => [
    ...['--quiet', '--no-pager', '--output=json', `--output-fields=${outputFields}`],
    ...(since === undefined ? [] : [`--since=@${Math.floor(since / 1_000)}`]),
    ...matchesOf(units, machine === '' ? [] : [`_MACHINE_ID=${machine}`]),
  ]

  /** An entry without its mask; undefined for one that is not asked for. */
  function read(line: string, { priority, since = 0 }: LogQuestion): Masked | undefined {
    let fields: JournalFields
    try {
      fields = JSON.parse(line) as JournalFields
    } catch {
      // Longer than a line may be.
      return undefined
    }
    const number = priorityOf(fields)
    const at = Number(textOf(fields, '__REALTIME_TIMESTAMP')) / 1_000
    if (number > priority || !(at >= since)) return undefined
    const unit =
      textOf(fields, '_TRANSPORT') === 'kernel'
        ? 'kernel'
        : /^(.+)\.service$/.exec(textOf(fields, 'UNIT'))?.[1] || componentOf(fields)
    if (ofCluster.has(unit) && at < clusterSince()) return undefined
    return {
      source: `${unit} ${textOf(fields, '_PID')}`,
      entry: {
        time: new Date(at).toISOString(),
        unit,
        priority: priorities[number] ?? 'info',
        message: messageOf(fields.MESSAGE),
        cursor: textOf(fields, '__CURSOR'),
      },
    }
  }

  /** Masks entries in their order. */
  function createEntryMask() {
    const maskKey = createKeyMask()
    return ({ source, entry }: Masked): LogEntry => ({
      ...entry,
      message: maskShapes(hide()(maskKey(source, entry.message))),
    })
  }

  async function readJournal(question: LogQuestion, signal: AbortSignal) {
    const found: Masked[] = []
    const enough = new AbortController()
    const late = AbortSignal.timeout(searchMs)
    let oldest: number | undefined
    try {
      const { exitCode, tail } = await streamer.stream('journalctl', ['--reverse', ...optionsOf(question)], {
        timeoutMs: 2 * searchMs,
        niceness: 10,
        signal: AbortSignal.any([signal, enough.signal, late]),
        onLine(line, from) {
          if (from === 'stderr' || enough.signal.aborted) return
          const entry = read(line, question)
          if (entry) found.push(entry)
          const [, time] = /"__REALTIME_TIMESTAMP":"(\d+)"/.exec(line) ?? []
          if (time !== undefined) oldest = Number(time) / 1_000
          if (found.length >= question.lines) enough.abort()
        },
      })
      if (exitCode !== 0 && found.length === 0 && /^(Failed|No journal)/m.test(tail)) throw unreadable(tail)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof CommandFailed)) throw error
      if (error.reason === 'not-started') throw unreadable(error.message)
    }
    const isCut = late.aborted && !enough.signal.aborted
    return { found: found.reverse(), ...(isCut ? { searchedSince: oldest ?? clock.now() } : {}) }
  }

  /** Lines of the steps since an offset of each; a line has no time of its own, so it gets the start time of its step. */
  async function readSteps(
    { since = 0, priority }: LogQuestion,
    offsets: Map<string, number>,
    isFirst: boolean,
  ): Promise<Masked[]> {
    // They are neither errors nor warnings.
    if (priority < 6) return []
    const found: Masked[] = []
    for (const name of await readdir(steps).catch(() => [])) {
      const { order, output } = runFiles(join(steps, name))
      const { startedAt = 0 } = (await readJsonFile<RunOrder>(order).catch(() => undefined)) ?? {}
      if (startedAt < since) continue
      const offset = offsets.get(name) ?? 0
      const { text, bytes } = isFirst
        ? { text: await readLastLines(output, stepBytes).catch(() => ''), bytes: (await sizeOf(output)) ?? 0 }
        : await readSince(output, offset)
      offsets.set(name, offset + bytes)
      for (const message of text.split('\n').filter((line) => line !== ''))
        found.push({
          source: name,
          entry: {
            time: new Date(startedAt).toISOString(),
            unit: 'steps',
            priority: 'info',
            message,
            cursor: '',
          },
        })
    }
    return found.sort((one, two) => byTime(one.entry, two.entry))
  }

  return {
    async read(question, signal) {
      const { found, searchedSince } = hasJournal(question)
        ? await readJournal(question, signal)
        : { found: [] as Masked[], searchedSince: undefined }
      const ofSteps = question.units.includes('steps') ? await readSteps(question, new Map(), true) : []
      const all = [...found, ...ofSteps]
      const cut = all.map(({ source, entry }) => ({ source, message: entry.message }))
      maskCutKeys(cut)
      const mask = createEntryMask()
      const entries = all
        .map(({ source, entry }, index) =>
          mask({ source, entry: { ...entry, message: cut[index]?.message ?? masked } }),
        )
        // Stable: entries of one time keep their order.
        .sort(byTime)
        .slice(-question.lines)
      return { entries, ...(searchedSince === undefined ? {} : { searchedSince }) }
    },

    async follow(question, onEntry, signal, after) {
      const mask = createEntryMask()
      const ended = new AbortController()
      const both = AbortSignal.any([signal, ended.signal])
      const journal = async () => {
        if (!hasJournal(question)) return
        const begin = after === undefined ? [`--lines=${firstOfFollower}`] : [`--after-cursor=${after}`]
        const { exitCode, tail } = await streamer.stream(
          'journalctl',
          // Alone, --follow is of the present boot. In a container, whose id of the boot is mounted over that of the kernel, the /proc of the
          // sandbox shows another one, and nothing would come.
          ['--follow', '--merge', ...begin, ...optionsOf(question, await machineId())],
          {
            timeoutMs: longestFollowMs,
            signal: both,
            onLine(line, from) {
              const entry = from === 'stdout' ? read(line, question) : undefined
              if (entry) onEntry(mask(entry))
            },
          },
        )
        throw unreadable(tail.trim() || `journalctl ended with ${exitCode ?? 'a signal'}`)
      }
      const ofSteps = async () => {
        if (!question.units.includes('steps')) return
        const offsets = new Map<string, number>()
        const before = await readSteps(question, offsets, true)
        if (after === undefined) for (const each of before.slice(-firstOfFollower)) onEntry(mask(each))
        for (;;) {
          await sleep(stepPauseMs, undefined, { signal: both })
          for (const each of await readSteps(question, offsets, false)) onEntry(mask(each))
        }
      }
      try {
        await Promise.all([journal(), ofSteps()])
      } catch (error) {
        if (signal.aborted) return
        // Its longest time: the client connects again.
        if (error instanceof CommandFailed && error.reason === 'timed-out') return
        if (error instanceof CommandFailed) throw unreadable(error.message)
        throw error
      } finally {
        ended.abort()
      }
    },

    takePlace() {
      if (following >= followers)
        throw new AppError(
          diagnosisErrors.DiagnosisBusy,
          `${followers} clients follow the logs already; end one of them`,
          { retryAfterSec: 30 },
        )
      following += 1
      return () => void (following -= 1)
    },
  }
}

const byTime = ({ time: one }: LogEntry, { time: two }: LogEntry) => (one < two ? -1 : one > two ? 1 : 0)

const hasJournal = ({ units }: LogQuestion) => units.some((unit) => unit !== 'steps')

/** Matches of journalctl(1): lines of a unit, lines of systemd about it, and the kernel; a + between alternatives. */
function matchesOf(units: readonly LogUnit[], each: readonly string[]): string[] {
  const alternatives = units.flatMap((unit): string[][] => {
    if (unit === 'steps') return []
    if (unit === 'kernel') return [['_TRANSPORT=kernel']]
    return unitsOf[unit].flatMap((name) => [[`_SYSTEMD_UNIT=${name}`], ['_PID=1', `UNIT=${name}`]])
  })
  return alternatives.flatMap((matches, index) =>
    index === 0 ? [...each, ...matches] : ['+', ...each, ...matches],
  )
}

/** Id of this machine: --merge reads journals that other machines have sent too. */
const machineId = async (): Promise<string> =>
  /^[0-9a-f]{32}/.exec(await readFile('/etc/machine-id', 'utf8').catch(() => ''))?.[0] ?? ''

/** Whole lines after an offset, and their bytes; of a line that is too long, a part. */
async function readSince(path: string, offset: number) {
  const file = await open(path).catch(() => undefined)
  if (!file) return { text: '', bytes: 0 }
  try {
    const buffer = Buffer.alloc(stepBytes)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
    const end = buffer.subarray(0, bytesRead).lastIndexOf('\n') + 1
    const bytes = end === 0 && bytesRead === buffer.length ? bytesRead : end
    return { text: buffer.toString('utf8', 0, bytes), bytes }
  } finally {
    await file.close()
  }
}

/** Parses a list of units; all without one. @throws AppError BadRequest */
export function parseUnits(text: string | undefined): readonly LogUnit[] {
  if (text === undefined || text === '') return logUnits
  const names = [...new Set(text.split(','))]
  const unknown = names.find((name) => !logUnits.some((unit) => unit === name))
  if (unknown !== undefined)
    throw refusedField('unit', `must be of ${logUnits.join(', ')}, with a comma between`)
  return names as LogUnit[]
}

const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** Parses a time: RFC 3339, or a span before now, as 90s, 15m, 2h, 7d. @throws AppError BadRequest */
export function parseSince(text: string | undefined, now: number): number | undefined {
  if (text === undefined || text === '') return undefined
  const [, count, unit = ''] = /^-?(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * (seconds[unit] ?? 0) * 1_000
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : NaN
  if (Number.isNaN(at))
    throw refusedField(
      'since',
      'must be a time as 2026-01-31T08:00:00Z, or a span before now as 15m, 2h or 7d',
    )
  return at
}

/** A cursor of the journal, as a client sends it back. */
export const isCursor = (text: string): boolean => /^s=[0-9a-f]{32}(;[a-z]=[0-9a-f]{1,32}){3,6}$/.test(text)

const unreadable = (why: string) =>
  new AppError(
    generalErrors.NotReady,
    `the journal could not be read: ${why.trim().split('\n').at(-1) ?? ''}; see journalctl -u edgehostd`,
  )
