import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import { generalErrors } from '../../../src/errors/codes.ts'
import { receiveBody, receiveUpload, uploadField } from '../../../src/upload/receive.ts'
import { createRunningUploads, type RunningUploadsOptions } from '../../../src/upload/running.ts'
import { noise } from '../../support/random.ts'
import { waitFor } from '../../support/wait-for.ts'

const never = new AbortController().signal
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'upload-turns-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const uploadsOf = (more: Partial<RunningUploadsOptions> = {}) =>
  createRunningUploads({
    ...{ what: 'files', field: uploadField, maximum: 1, ofUser: 4, ofAll: 8, waitSeconds: 60, ...more },
  })

/** A body of which a chunk arrives each time that it is asked for one. */
function arriving() {
  const chunks: Buffer[] = []
  let more = Promise.withResolvers<undefined>()
  let isEnded = false
  const tell = () => {
    more.resolve(undefined)
    more = Promise.withResolvers()
  }
  async function* content(): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = chunks.shift()
      if (chunk) yield chunk
      else if (isEnded) return
      else await more.promise
    }
  }
  return {
    content: content(),
    /** How many are not taken yet. */
    waiting: () => chunks.length,
    send(chunk: Buffer) {
      chunks.push(chunk)
      tell()
    },
    end() {
      isEnded = true
      tell()
    },
  }
}

let files = 0
type Uploads = ReturnType<typeof uploadsOf>

function receive(uploads: Uploads, name: string, content: AsyncIterable<Buffer>, signal = never) {
  files += 1
  return uploads.run({ name, signal }, async (upload) => {
    const own = await mkdtemp(join(folder, `${files}-`))
    return receiveUpload({
      ...{ folder: own, limitBytes: 100_000_000, reserveBytes: 0, expectedBytes: undefined },
      ...{ signingKey: undefined, place: upload.place, signal: upload.signal },
      freeBytes: async () => Number.MAX_SAFE_INTEGER,
      parts: (async function* () {
        yield { fieldName: uploadField, fileName: 'a', content }
      })(),
    })
  })
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('turns of uploads', () => {
  it('two bodies with one place are whole and in order, whichever is paused with buffered bytes in between', async () => {
    const uploads = uploadsOf()
    const bodies = ['anna', 'ben'].map((name) => {
      const body = arriving()
      return { body, name, sent: [] as Buffer[], result: receive(uploads, name, body.content) }
    })
    for (const size of [10_000, 524_288, 1, 700_001, 65_536]) {
      for (const { body, sent } of bodies) {
        const chunk = noise(size)
        sent.push(chunk)
        body.send(chunk)
        // It has its turn although the other one, which has not ended, had the place.
        await waitFor(() => expect(body.waiting()).toBe(0), { timeout: 60_000 })
      }
    }
    for (const { body, sent, result } of bodies) {
      body.end()
      const { file, sha256: hash, sizeBytes } = await result
      const all = Buffer.concat(sent)
      expect([hash, sizeBytes]).toEqual([sha256(all), all.length])
      expect((await readFile(file)).equals(all)).toBe(true)
    }
    await uploads.stop()
  })

  it('one user has not all turns: another one comes before the second body of the first', async () => {
    const uploads = uploadsOf()
    const order: string[] = []
    const { promise: began, resolve: begin } = Promise.withResolvers<undefined>()
    const { promise: ended, resolve: end } = Promise.withResolvers<undefined>()
    // Between two chunks for as long as the test lasts.
    const slow = uploads.run({ name: 'anna', signal: never }, async ({ place }) => {
      const own = place()
      await own.take(0)
      own.rest()
      begin(undefined)
      await ended
    })
    await began
    const others = ['anna', 'anna', 'ben', 'anna'].map((name) =>
      uploads.run({ name, signal: never }, async ({ place }) => {
        const own = place()
        await own.take(0)
        order.push(name)
        own.leave()
      }),
    )
    await Promise.all(others)
    expect(order).toEqual(['ben', 'anna', 'anna', 'anna'])
    end(undefined)
    await slow
  })

  it('a paused upload that has no turn for long is refused with what has arrived of it, and one that is ended waits no more', async () => {
    const uploads = uploadsOf({ waitSeconds: 0.4 })
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<undefined>()
    const stuck = uploads.run({ name: 'anna', signal: never }, async ({ place }) => {
      await place().take(0)
      await blocked
    })
    const own = await mkdtemp(join(folder, 'own-'))
    const bodyOf = (signal: AbortSignal) =>
      uploads.run({ name: 'ben', signal }, (upload) =>
        receiveBody(
          {
            ...{ folder: own, limitBytes: 100, reserveBytes: 0, expectedBytes: undefined },
            ...{ place: upload.place, signal: upload.signal, freeBytes: async () => Number.MAX_SAFE_INTEGER },
          },
          async (onChunk) => onChunk(noise(10)),
        ),
      )
    await expect(bodyOf(never)).rejects.toMatchObject({
      kind: { code: 'TooManyUploads' },
      message: expect.stringContaining('it had no turn for 0.4 s after 0 bytes') as string,
      details: { field: uploadField, reason: 'NoTurn', receivedBytes: 0 },
    })
    const ended = new AbortController()
    const reason = new AppError(generalErrors.BadRequest, 'gone')
    const gone = bodyOf(ended.signal)
    ended.abort(reason)
    await expect(gone).rejects.toBe(reason)
    unblock(undefined)
    await stuck
    await expect(bodyOf(never)).resolves.toBe(join(own, 'archive'))
  })

  it('a stop ends uploads that run and those that wait', async () => {
    const uploads = uploadsOf({ ofUser: 1 })
    const results = [1, 2, 3].map(() =>
      uploads.run({ name: 'anna', signal: never }, async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw signal.reason
      }),
    )
    await uploads.stop()
    for (const result of results) await expect(result).rejects.toMatchObject({ kind: { code: 'NotReady' } })
  })
})
