import type { EncryptedFile } from '../../secrets/encrypted-file.ts'
import type { Logger } from '../../system/log.ts'
import { waitAfter } from '../client.ts'
import type { Announcement, KeptOrder, DesiredStore } from './desired-store.ts'
import { decide, type ClusterNow, type DesiredCondition } from './decide.ts'
import type { Download, DownloadProgress, DownloadResult } from './download.ts'
import { DeliveryRefused, readDelivery, type Delivery } from './read-delivery.ts'

/** Result of a delivery in the room of the cluster. */
export type DeliveryOutcome =
  | { readonly kind: 'applied'; readonly revision: number }
  | { readonly kind: 'deleting' | 'deleted' }
  | { readonly kind: 'refused' | 'contentMissing' | 'clusterExists' | 'later'; readonly message: string }

/** The cluster of this host, which the root hands in. */
export interface ClusterToFollow {
  current(): ClusterNow | undefined
  /** Applies the desired cluster; an order may come again. Rejects with the reason of the signal only. */
  apply(
    delivery: Delivery | (Pick<Delivery, 'uid' | 'name' | 'number'> & { readonly isDeleted: true }),
    signal: AbortSignal,
  ): Promise<DeliveryOutcome>
}

export interface FollowOptions {
  readonly store: DesiredStore
  readonly download: Download
  readonly cluster: ClusterToFollow
  /** Bytes of a definition. */
  readonly limitBytes: number
  /** Path of the download; undefined before this host is registered. */
  readonly path: () => string | undefined
  /** Undefined while this host is not logged in. */
  readonly token: () => string | undefined
  /** Of the platform that this host is registered at, where it is known. */
  readonly tenantUid: () => string | undefined
  /** The condition, or the state of the cluster, may have changed. */
  readonly onChange: () => void
  /** Returns after so many milliseconds, or early when the signal is aborted; does not reject. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** 0 up to 1. */
  readonly random: () => number
  readonly stopping: AbortSignal
  readonly log: Logger
}

/** Desired cluster of the platform, and its progress. */
export interface DesiredStatus {
  /** Undefined before anything was downloaded. */
  readonly uid: string | undefined
  readonly name: string | undefined
  /** The number that is announced; undefined where nothing is. */
  readonly number: number | undefined
  /** The newest number of this cluster that was accepted; 0 for none. */
  readonly accepted: number
  /** The newest number of this cluster that was dealt with, also by a refusal; 0 for none. */
  readonly seen: number
  readonly condition: DesiredCondition | undefined
  /** While something is being downloaded. */
  readonly download: DownloadProgress | undefined
}

/** Follows the desired cluster of the platform: fetches it, hands it to the cluster, and keeps the outcome. */
export interface Follow {
  /** Each heartbeat announces the desired state. */
  announce(announced: Announcement | undefined): void
  /** Content has come or gone. */
  contentChanged(): void
  /** The cluster may have changed. */
  wake(): void
  run(): Promise<void>
  status(): DesiredStatus
}

const longestPauseMs = 300_000
// The sum of hundreds of megabytes is not tried again at once.
const afterWrongSumMs = 60_000
const laterMs = 10_000

export function createFollow(options: FollowOptions): Follow {
  const { store, download, cluster, random, stopping, log } = options
  let announced: Announcement | undefined
  /** Whether a heartbeat has announced the desired state since the start. */
  let isReported = false
  // Content that was missing at the last stop may be there by now.
  let hasNewContent = true
  let seenEtag: string | undefined
  let condition: DesiredCondition | undefined
  /** The cluster that the condition is about. */
  let conditionUid: string | undefined
  /** The cluster that is being applied. */
  let subject: { readonly uid: string; readonly name: string } | undefined
  let isDownloading = false
  let failures = 0
  let running: AbortController | undefined
  let rest = new AbortController()
  /** Ends also a rest after a failure: another state is desired. */
  let next = new AbortController()

  const desiredUid = () => announced?.uid ?? (store.current()?.uid || undefined)

  function set(found: DesiredCondition | undefined, uid: string | undefined): void {
    const isNew = uid !== conditionUid || JSON.stringify(found) !== JSON.stringify(condition)
    condition = found
    conditionUid = uid
    if (isNew) options.onChange()
  }

  /** @returns how long to rest, milliseconds */
  async function turn(): Promise<number> {
    const input = { announced, hasNewContent, seenEtag, tenantUid: options.tenantUid() }
    const about = desiredUid()
    const decision = decide({ ...input, kept: store.current(), cluster: cluster.current() })
    switch (decision.kind) {
      case 'rest':
        failures = 0
        subject = undefined
        set(decision.condition, about)
        if (isReported && !isWaiting(announced, store.current())) await download.discard()
        return Infinity
      case 'note':
        await store.put(decision.kept)
        return 0
      case 'gone': {
        const { uid, name, number } = decision.kept
        await cluster.apply({ uid, name, number, isDeleted: true }, stopping)
        await store.put(decision.kept)
        return 0
      }
      case 'fetch':
        return announced ? fetch(announced) : Infinity
    }
  }

  const again = (leastMs = 0, retryAfter?: string) => {
    failures++
    return Math.max(leastMs, waitAfter(failures, random(), retryAfter, longestPauseMs))
  }

  async function fetch(desired: Announcement): Promise<number> {
    const { etag, number } = desired
    const about = desiredUid()
    const present = await download.wholeFile(etag)
    if (present !== undefined) return read(present, desired)
    const [path, token] = [options.path(), options.token()]
    if (path === undefined || token === undefined) {
      // The heartbeat after the next login comes back to it.
      failures = 0
      return Infinity
    }
    set({ status: 'Unknown', reason: 'Downloading', message: `number ${number}`, number }, about)
    running = new AbortController()
    const signal = AbortSignal.any([stopping, running.signal])
    isDownloading = true
    let result: DownloadResult
    try {
      result = await download.attempt({ path, token, etag }, signal)
    } catch (error) {
      // A newer state is desired.
      if (signal.aborted) return 0
      throw error
    } finally {
      isDownloading = false
      running = undefined
    }
    if (result.kind === 'whole') return read(result.file, desired)
    if (result.kind === 'sumWrong') {
      log.error({ number }, 'the download from the platform had another sum, and was thrown away')
      const message = 'what was downloaded had another sum, and was thrown away; it is tried again'
      set({ status: 'False', reason: 'SumWrong', message, number }, about)
      return again(afterWrongSumMs)
    }
    const message = result.kind === 'noRoom' ? result.message : result.cause.message
    set({ status: 'False', reason: 'DownloadFailed', message: `number ${number}: ${message}`, number }, about)
    if (result.kind === 'noRoom') return again()
    if (result.hasProgress) failures = 0
    return again(0, result.retryAfter)
  }

  /** Reads a whole download, and hands it to the cluster. */
  async function read(file: EncryptedFile, desired: Announcement): Promise<number> {
    const { number, etag } = desired
    const kept = store.current()
    const base = { number, etag, accepted: kept?.accepted ?? 0, revision: kept?.revision ?? 0 }
    let delivery: Delivery
    try {
      delivery = await readDelivery(file, options.limitBytes)
      requireMeant(delivery, desired, options.tenantUid())
    } catch (error) {
      if (!(error instanceof DeliveryRefused)) throw error
      const message = `what was downloaded ${error.message}`
      await end({ ...refusedAs(desired, kept, options.tenantUid()), outcome: 'refused', message })
      return 0
    }
    const { uid, name, tenantUid } = delivery
    const isSame = kept?.uid === uid
    if (isSame && number <= kept.number && etag !== kept.etag) {
      seenEtag = etag
      await download.discard()
      return 0
    }
    subject = { uid, name }
    set({ status: 'Unknown', reason: 'Applying', message: `number ${number}`, number }, uid)
    hasNewContent = false
    const outcome = await cluster.apply(delivery, stopping)
    if (outcome.kind === 'later') {
      const message = `it is tried again: ${outcome.message}`
      set({ status: 'Unknown', reason: 'Applying', message, number }, uid)
      return again(laterMs)
    }
    const isAccepted = ['applied', 'deleting', 'deleted'].includes(outcome.kind)
    const before = isSame ? base : { ...base, accepted: 0, revision: 0 }
    await end({
      ...before,
      tenantUid,
      uid,
      name,
      outcome: outcome.kind,
      message: 'message' in outcome ? outcome.message : '',
      ...(isAccepted ? { accepted: number } : {}),
      ...(outcome.kind === 'applied' ? { revision: outcome.revision } : {}),
    })
    return 0
  }

  /** Keeps the outcome; the download is not needed after that, unless content is missing. */
  async function end(kept: KeptOrder): Promise<void> {
    await store.put(kept)
    failures = 0
    if (kept.outcome !== 'contentMissing') await download.discard()
    log.info({ number: kept.number, outcome: kept.outcome }, 'the order of the platform was dealt with')
    options.onChange()
  }

  return {
    announce(found) {
      if (found?.etag !== announced?.etag) {
        running?.abort(new Error('something else is wanted'))
        next.abort()
      }
      announced = found
      isReported = true
      rest.abort()
    },
    contentChanged() {
      hasNewContent = true
      rest.abort()
    },
    wake: () => rest.abort(),
    async run() {
      while (!stopping.aborted) {
        rest = new AbortController()
        next = new AbortController()
        const ms = await turn().catch((error: unknown) => {
          if (stopping.aborted) return 0
          log.error({ err: error }, 'the order of the platform could not be dealt with; it is tried again')
          return again(laterMs)
        })
        // After a failure it is not tried earlier, whatever happens, unless another state is desired.
        const ends = [stopping, next.signal, ...(failures === 0 ? [rest.signal] : [])]
        if (ms > 0) await options.pause(Math.min(ms, mostPauseMs), AbortSignal.any(ends))
      }
    },
    status() {
      const kept = store.current()
      const uid = subject?.uid ?? desiredUid()
      const isKept = kept !== undefined && kept.uid === uid
      const name = subject?.name ?? (isKept ? kept.name || undefined : undefined)
      const progress = isDownloading ? download.progress() : undefined
      return {
        uid,
        name,
        number: announced?.number,
        download: progress,
        // The outcome of an earlier cluster says nothing about the announced one.
        condition: uid === conditionUid ? condition : undefined,
        ...(isKept ? { accepted: kept.accepted, seen: kept.number } : { accepted: 0, seen: 0 }),
      }
    },
  }
}

/** Whether the download is applied when its content has come. */
const isWaiting = (announced: Announcement | undefined, kept: KeptOrder | undefined) =>
  kept?.outcome === 'contentMissing' && kept.etag === announced?.etag

/** The kept order of an unreadable delivery: it is of the platform of this host, whatever was desired before. */
function refusedAs(
  { uid, number, etag }: Announcement,
  kept: KeptOrder | undefined,
  platform: string | undefined,
): Omit<KeptOrder, 'outcome' | 'message'> {
  const isKnown = platform !== undefined && platform !== ''
  const tenantUid = isKnown ? platform : (kept?.tenantUid ?? '')
  const isSame = kept?.tenantUid === tenantUid && [undefined, kept.uid].includes(uid)
  return isSame
    ? { ...kept, number, etag }
    : { tenantUid, uid: uid ?? '', name: '', number, etag, accepted: 0, revision: 0 }
}

// Largest value of a timer.
const mostPauseMs = 86_400_000

/** @throws DeliveryRefused */
function requireMeant(
  { number, tenantUid, uid }: Delivery,
  desired: Announcement,
  platform: string | undefined,
): void {
  if (number !== desired.number) throw new DeliveryRefused(`has the number ${number}, not ${desired.number}`)
  if (desired.uid !== undefined && uid !== desired.uid)
    throw new DeliveryRefused('is another cluster than the heartbeat says')
  if (![undefined, '', tenantUid].includes(platform))
    throw new DeliveryRefused('is of another platform than the one of this host')
}
