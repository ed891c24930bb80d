import { setTimeout as sleep } from 'node:timers/promises'
import { Readable, Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { Failure } from '../../../ctl/exit-codes.ts'
import type { MissingContentBlob } from '../../schemas.ts'
import { Interrupted, Refused, UploadGone, type PublishedBundle, type UploadHost } from './host.ts'
import type { Meter } from '../../../ctl/output.ts'
import type { BundleSource, SourceBlob } from './sources.ts'

export interface SendOptions {
  readonly host: UploadHost
  readonly source: BundleSource
  readonly name: string
  readonly signature: Buffer | undefined
  readonly meter: Meter
  /** Requests at the same time. */
  readonly connections: number
}

/** Result of the upload. */
export interface Sent {
  readonly uid: string
  readonly message: string
  /** False if the host had the bundle before. */
  readonly isNew: boolean
}

// Of a source that is read in order, a blob up to this size is read into memory, so that several can be sent at once.
const bufferedBytes = 8_388_608
const firstPauseMs = 1_000
const longestPauseMs = 30_000
// So often a blob is sent again where the host takes no more requests for a while; then the round ends.
const mostRefusals = 20
// Without any progress in this time the command gives up. It can be run again.
const patienceMs = 900_000

/**
 * Sends a bundle blob by blob, and publishes it. It keeps nothing on this machine: the host lists the missing blobs, also after
 * an interruption.
 * @throws Failure
 */
export async function sendBlobs({
  host,
  source,
  name,
  signature,
  meter,
  connections,
}: SendOptions): Promise<Sent> {
  const again = createPatience(meter)
  const { uid, isPublished, message } = await again(() =>
    host.begin({ index: source.index, name, signature }),
  )
  if (isPublished) return { uid, message, isNew: false }
  /** Blobs whose bytes had the wrong digest when they were sent from their beginning on. */
  let rejected: string | undefined

  /** @returns whether anything was sent */
  async function sendRound(missing: readonly MissingContentBlob[]): Promise<boolean> {
    const wanted = new Map(missing.map((blob) => [blob.digest, blob]))
    let hasSent = false
    const problems: Error[] = []
    const running = new Set<Promise<void>>()
    for await (const blob of source.blobs(new Set(wanted.keys()))) {
      const known = wanted.get(blob.digest)
      if (!known) continue
      if (blob.sizeBytes !== known.sizeBytes) throw wrongSize(blob, known)
      if (problems.length > 0) break
      while (running.size >= connections) await Promise.race(running)
      const isStreamed = source.isInOrder && blob.sizeBytes - known.heldBytes > bufferedBytes
      const body = source.isInOrder && !isStreamed ? await buffer(blob.open(known.heldBytes)) : undefined
      // A stream that is read in order cannot be sent again: if the token has to be renewed, it is done before.
      if (isStreamed) await host.missing(uid)
      const read = () => blob.open(known.heldBytes)
      const sending = sendOne(known, body ? () => body : isStreamed ? readOnce(read) : read, isStreamed)
        .then(() => void (hasSent = true))
        .catch((error: unknown) => void problems.push(error as Error))
        .finally(() => running.delete(sending))
      running.add(sending)
      if (!isStreamed) continue
      await sending
      // Of a blob that was read in part, the source does not know where the next one begins.
      if (problems.length > 0) break
    }
    await Promise.all(running)
    const [problem] = problems
    if (problem) throw problem
    return hasSent
  }

  async function sendOne(
    blob: MissingContentBlob,
    read: () => Readable | Buffer,
    isStreamed: boolean,
  ): Promise<void> {
    let counted = 0
    let broken: Error | undefined
    const open = () => {
      meter.sent(-counted)
      counted = 0
      const content = read()
      const counter = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          counted += chunk.length
          meter.sent(chunk.length)
          done(null, chunk)
        },
      })
      if (Buffer.isBuffer(content)) counter.end(content)
      else {
        counter.once('close', () => content.destroy())
        content.once('error', (error) => {
          broken = error
          counter.destroy(error)
        })
        content.pipe(counter)
      }
      return counter
    }
    const body = { sizeBytes: blob.sizeBytes - blob.heldBytes, open }
    let result: Awaited<ReturnType<UploadHost['send']>>
    for (let refusals = 1; ; refusals += 1) {
      try {
        result = await host.send(uid, blob, body)
        break
      } catch (error) {
        if (broken) throw broken
        if (!(error instanceof Refused) || isStreamed || refusals === mostRefusals) throw error
        await sleep(Math.max(1, error.retryAfterSec) * 1_000)
      }
    }
    if (result === 'sent') return
    meter.sent(-counted)
    if (result === 'damaged' && blob.heldBytes === 0) rejected = blob.digest
    throw new Interrupted(new Failure('failed', `the host does not take ${blob.digest} as it was sent`), 1)
  }

  /** @returns the published bundle */
  async function round(): Promise<PublishedBundle | undefined> {
    if (rejected !== undefined) throw damaged(rejected)
    let missing = await host.missing(uid)
    for (;;) {
      const manifests = missing.filter(({ digest, isManifest }) => isManifest && source.mayHave(digest))
      if (manifests.length === 0 || !(await sendRound(manifests))) break
      missing = await host.missing(uid)
    }
    const rest = missing.filter(({ digest, isManifest }) => !isManifest && source.mayHave(digest))
    measure(rest)
    if (rest.length > 0) {
      await sendRound(rest)
      missing = await host.missing(uid)
    }
    const lacking = missing.filter(({ isOptional }) => !isOptional)
    if (lacking.length > 0) throw incomplete(lacking)
    meter.say('All blobs are on the host; it checks and publishes the bundle.')
    return host.publish(uid)
  }

  let isMeasured = false
  function measure(missing: readonly MissingContentBlob[]): void {
    const left = missing.reduce((sum, { sizeBytes, heldBytes }) => sum + sizeBytes - heldBytes, 0)
    const held = missing.reduce((sum, { heldBytes }) => sum + heldBytes, 0)
    const before = isMeasured ? meter.sentBytes() : 0
    isMeasured = true
    meter.begin(before + left + held, before + held)
  }

  for (;;) {
    const published = await again(() => round().catch(findPublished))
    // The bundle of an upload has its uid; with another uid the host had the bundle before.
    if (published) return { ...published, isNew: published.uid === uid }
  }

  /** An upload is gone if it was published: by a request whose reply was lost, or by another edgehostctl. */
  async function findPublished(error: unknown): Promise<Pick<PublishedBundle, 'uid' | 'message'>> {
    if (!(error instanceof UploadGone)) throw error
    const bundle = await host.find(source.index)
    if (!bundle) throw error
    return { uid: bundle.uid, message: `the bundle ${bundle.name} is published` }
  }
}

/** A source of bytes that can be opened once; a second time it fails as a connection does. */
function readOnce(read: () => Readable): () => Readable {
  let isRead = false
  return () => {
    if (isRead) return new Readable().destroy(new Interrupted(new Failure('failed', 'the token was renewed')))
    isRead = true
    return read()
  }
}

/** Repeats work that was interrupted, with growing pauses, as long as something moves now and then. */
function createPatience(meter: Meter) {
  return async <T>(work: () => Promise<T>): Promise<T> => {
    let movedAt = performance.now()
    let sentBefore = meter.sentBytes()
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error
        if (meter.sentBytes() > sentBefore) {
          movedAt = performance.now()
          pauseMs = firstPauseMs
        }
        sentBefore = meter.sentBytes()
        if (performance.now() - movedAt > patienceMs) throw error.failure
        const waitMs = Math.max(pauseMs, error.retryAfterSec * 1_000)
        if (waitMs > firstPauseMs)
          meter.say(
            `Interrupted: ${error.message.split('\n', 1)[0] ?? ''}; next attempt in ${Math.ceil(waitMs / 1_000)} s.`,
          )
        await sleep(waitMs)
      }
    }
  }
}

const wrongSize = ({ digest, sizeBytes }: SourceBlob, known: MissingContentBlob) =>
  new Failure(
    'failed',
    `${digest} has ${sizeBytes} bytes here, and ${known.sizeBytes} by its manifest; build the bundle again`,
  )

const damaged = (digest: string) =>
  new Failure('failed', `the content of ${digest} does not have this digest; copy or build the bundle again`)

function incomplete(lacking: readonly MissingContentBlob[]): Failure {
  const shown = lacking.slice(0, 5).map(({ digest }) => digest)
  const more = lacking.length > shown.length ? ` and ${lacking.length - shown.length} more` : ''
  return new Failure(
    'failed',
    `the bundle lacks blobs that it needs: ${shown.join(', ')}${more}; pull the images again with all their layers and build it again`,
  )
}
