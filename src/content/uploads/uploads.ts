import type { FastifyInstance } from 'fastify'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import type { Room } from '../../root/room.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { boundedUploads, busyWithUploads, createRunningUploads } from '../../upload/running.ts'
import type { SigningKey } from '../../upload/signing.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentProgram } from '../program/content-program.ts'
import { showUpload, uploadContentRoutes, uploadsRoutes } from '../routes-uploads.ts'
import type { ContentStore } from '../store/content-store.ts'
import { createBlobUploads, indexField } from './blob-uploads.ts'
import { createFileUploads } from './file-uploads.ts'

export interface UploadsOptions {
  readonly store: ContentStore
  readonly program: ContentProgram
  /** Boot of the kernel. */
  readonly bootId: string
  readonly settings: ContentSettings['upload']
  readonly signingKey: SigningKey | undefined
  readonly listTokens: ContinueTokens
  /** Aborted when a stop of the daemon begins: all uploads end with a refusal. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

const dayMs = 86_400_000
// Each holds an index.json of up to 16 MiB in memory.
const mostBeginning = 4

interface ContentUploads extends Required<
  Pick<Room, 'routes' | 'jobs' | 'background' | 'states' | 'busy' | 'stop'>
> {
  /** Number of uploads that are not finished. */
  unfinished(): Promise<number>
  /** Removes uploads that wait for their clients. @returns whether none is left. @throws AppError UploadBusy while one is published */
  removeAll(): Promise<boolean>
}

/** The uploads of content, as a part of its room. */
export function createUploads(options: UploadsOptions): ContentUploads {
  const { store, program, bootId, settings, signingKey, listTokens, stopping, clock, log } = options
  const times = { now: () => clock.now(), monotonic: () => clock.monotonic() }
  const blobUploads = createBlobUploads({
    store,
    program,
    bootId,
    signingKey,
    maximum: settings.unfinished,
    keptMs: settings.keptDays * dayMs,
    log,
    ...times,
  })
  const fileUploads = createFileUploads({
    store,
    program,
    signingKey,
    ready: blobUploads.ready,
    maximum: settings.maximum,
    ...times,
  })
  const beginning = createRunningUploads({
    what: 'indexes of bundles',
    field: indexField,
    ...boundedUploads(mostBeginning),
  })
  const stop = async () => {
    await Promise.all([beginning.stop(), fileUploads.stop(), blobUploads.stop()])
  }
  // `stop` waits until they have ended, stalled ones too.
  let ended: Promise<void> | undefined
  stopping.addEventListener('abort', () => void (ended = stop()))
  return {
    async routes(app: FastifyInstance) {
      await uploadsRoutes(app, {
        blobUploads,
        fileUploads,
        beginning,
        store,
        signingKey,
        listTokens,
      })
      await uploadContentRoutes(app, { fileUploads, store })
    },
    jobs: [
      {
        name: 'content-uploads',
        schedule: '23 * * * *',
        stuckAfterMs: 3_600_000,
        run: blobUploads.forgetSilent,
      },
    ],
    // Uploads of files of a killed daemon go, and uploads that continue are listed. The store has logged why it cannot be read.
    background: () => void blobUploads.ready().catch(() => undefined),
    states: [
      {
        type: 'upload',
        access: 'viewer',
        paths: ['/v1/edge-mgmt/content/uploads'],
        read: async () => [...(await blobUploads.list()), ...fileUploads.list()].map(showUpload),
      },
    ],
    busy: () => busyWithUploads(fileUploads.count() + blobUploads.movingCount(), 'content'),
    unfinished: async () => fileUploads.count() + (await blobUploads.list()).length,
    async removeAll() {
      for (const { uid } of await blobUploads.list()) await blobUploads.remove(uid, stopping)
      return fileUploads.count() === 0
    },
    stop: () => ended ?? stop(),
  }
}
