import { join } from 'node:path'
import { uploadField, type UploadPart } from '../upload/receive.ts'
import { busyWithUploads } from '../upload/running.ts'
import type { SigningKey } from '../upload/signing.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Ground, ResetPart, Room } from '../root/room.ts'
import type { DefinitionSettings } from './config.ts'
import { iconRoutes } from './routes-icons.ts'
import { createIcons } from './slots/icons.ts'
import { definitionRoutes } from './routes.ts'
import type { ClusterProfileDetail } from './schemas.ts'
import { openDefinitionStore, createDefinitionTable, createOfferedUpdates } from './slots/definition-store.ts'
import { deliveredByBundle, type BundledDefinition, createPreparations } from './slots/preparations.ts'
import { createEmbedded } from './slots/embedded.ts'
import { createExaminer, createJudgeValues } from './slots/examiner.ts'
import { createSlots, nextDefinition, type Slots } from './slots/slots.ts'
import { createUploads } from './slots/uploads.ts'

interface DefinitionsOptions {
  /** Path of `examine.cjs`. */
  readonly program: string
  readonly signingKey: SigningKey | undefined
}

/** The cluster of this host, as the slots need it. */
export interface ClusterOfSlots {
  hasCluster(): boolean
  /** Profiles of the cluster; undefined if there is no cluster. */
  profiles(): Promise<readonly ClusterProfileDetail[] | undefined>
}

/** The room, and what the rooms of the content bundles and of the cluster need of it. */
export interface Definitions extends Room, Pick<Slots, 'archiveOf'> {
  /**
   * Examines the definition of a bundle that is about to be published.
   * @throws AppError why the definition is refused; StorageFull; NotReady if the daemon stops
   */
  examineBundled(order: BundledExamination): Promise<PreparedDefinition>
  /**
   * Brings the slots up to date; to be called when the bundles have been read at the start, and after each publication and
   * removal. It never fails: work that has to wait is logged and done at the next call. The archives are known when the call returns.
   * @param bundled all published bundles that hold a definition, the newest first
   */
  bundlesChanged(bundled: readonly BundledDefinition[]): Promise<void>
  /**
   * Examines a definition that came from the platform and puts it into the slot `platform`, unless it is there. It needs no signature:
   * the platform is trusted as an administrator is.
   * @returns its handle, `archiveUploadPath`
   * @throws AppError as an upload, and BadRequest for another SHA-256 than the platform says; nothing uses the content of the slot then
   */
  takeFromPlatform(delivery: PlatformDelivery, signal: AbortSignal): Promise<string>
  /** Empties the slot `platform`. */
  dropFromPlatform(): Promise<void>
  /** Name and version of the definition that a first cluster would be made with; undefined for none. */
  first(): string | undefined
  readonly resetPart: ResetPart
  /** The cluster that definitions are for; without one, each upload goes into the slot of a first definition. */
  attachCluster(cluster: ClusterOfSlots): void
}

/** The archive of a definition that came from the platform. */
export interface PlatformDelivery {
  readonly content: AsyncIterable<Buffer>
  readonly sizeBytes: number
  /** Of the archive, hex. */
  readonly sha256: string
  readonly fileName: string
}

export interface BundledExamination {
  /** The archive of the definition. */
  readonly file: string
  readonly sizeBytes: number
  readonly bundle: {
    readonly uid: string
    readonly name: string
    /** Milliseconds since 1970, UTC; the same that the record of the bundle says. */
    readonly publishedAt: number
  }
  /** Ends the examination with its reason, an AppError. */
  readonly signal: AbortSignal | undefined
}

/** An examined definition, which is in no slot yet. */
export interface PreparedDefinition {
  /** Puts the definition of the published bundle into its slot, unless a newer bundle or file is there. It never fails. */
  place(): Promise<void>
  /** Removes the results of the examination; nothing happens after `place`. */
  discard(): Promise<void>
}

/** Opens the store, removes what a killed daemon left there, and builds the room on it. */
export async function createDefinitions(
  ground: Ground<{ readonly definitions: DefinitionSettings }>,
  own: DefinitionsOptions,
): Promise<Definitions> {
  const { stateDirectory, database, completeUntil, version, runner, record, stopping, clock, log } = ground
  const { program, signingKey } = own
  const settings = ground.config.definitions
  let cluster: ClusterOfSlots = { hasCluster: () => false, profiles: () => Promise.resolve(undefined) }
  const hasCluster = () => cluster.hasCluster()
  const running = () => cluster.profiles()
  const store = await openDefinitionStore({
    folder: join(stateDirectory, 'definitions'),
    table: createDefinitionTable(database),
    completeUntil,
    log,
  })
  const examiner = createExaminer({ runner, program, settings: settings.check, log })
  const shared = { store, examiner, limits: settings.archive, clock }
  const preparations = createPreparations({ ...shared, reserveBytes: settings.upload.reserveBytes })
  const embedded = createEmbedded({
    file: settings.embeddedFile,
    store,
    preparations,
    offered: createOfferedUpdates(database),
    hasCluster,
    version,
    record,
    log,
  })
  /** Logs a failure; the next refresh does the work. */
  const logFailure = (error: unknown) => {
    // The daemon stopped meanwhile.
    if (error instanceof AppError) return
    log.error(
      { err: error },
      `the embedded definition could not be checked; see: ls -l ${settings.embeddedFile}`,
    )
  }
  const uploads = createUploads({
    ...shared,
    settings: settings.upload,
    signingKey,
    slotOf: () => (hasCluster() ? 'update' : 'overridden'),
  })
  const fromPlatform = createUploads({
    ...shared,
    settings: { ...settings.upload, maximum: 1 },
    signingKey: undefined,
    slotOf: () => 'platform',
  })
  // Uploads end with a refusal. `stop` waits until they have ended, stalled ones too.
  let uploadsEnded: Promise<void> | undefined
  const stopUploads = async () => {
    await Promise.all([uploads.stop(), fromPlatform.stop()])
  }
  stopping.addEventListener('abort', () => void (uploadsEnded = stopUploads()))
  const slots = createSlots({ store, embedded, judgeValues: createJudgeValues({ store, examiner }), running })
  return {
    async routes(app) {
      await definitionRoutes(app, { slots, receive: uploads.receive })
      const uids = () => store.list().map(({ uid }) => uid)
      const { profilesOf } = slots
      await iconRoutes(app, {
        icons: createIcons({ uids, profilesOf, running, monotonic: () => clock.monotonic() }),
      })
    },
    // So that the first request for the embedded definition does not have to wait.
    background: () => void embedded.refresh().catch(logFailure),
    stop: () => uploadsEnded ?? stopUploads(),
    busy: () => busyWithUploads(uploads.count() + fromPlatform.count(), 'definitions'),
    archiveOf: slots.archiveOf,
    async examineBundled({ file, sizeBytes, bundle: { uid: bundleUid, name, publishedAt }, signal }) {
      const bundle = { bundleUid, name, publishedAt, file, sizeBytes }
      const delivered = deliveredByBundle(bundle, version)
      const remove = await preparations.prepare(delivered, signal).catch(nameBundle)
      let isDiscarded = false
      return {
        async discard() {
          isDiscarded = true
          await remove()
        },
        async place() {
          if (isDiscarded) return
          // After a report of it too, which may be putting it into its slot.
          await embedded.addBundle(bundle).catch(logFailure)
          await remove().catch(logFailure)
        },
      }
    },
    async takeFromPlatform({ content, sizeBytes, sha256, fileName }, signal) {
      const held = store.find('platform')
      if (held?.sha256 === sha256) return slots.pathOf(held)
      const definition = await fromPlatform.receive({
        parts: () => onePart({ fieldName: uploadField, fileName, content }),
        expectedBytes: sizeBytes,
        uploader: { name: 'platform', signal },
      })
      if (definition.sha256 === sha256) return slots.pathOf(definition)
      throw new AppError(
        generalErrors.BadRequest,
        'the definition has another SHA-256 than the platform says of it',
      )
    },
    async dropFromPlatform() {
      await store.remove('platform')
    },
    resetPart: {
      describe: async () =>
        store
          .list()
          .filter(({ slot }) => removedByReset.some((each) => each === slot))
          .map(({ slot, name, version }) => `the definition ${name} ${version} in the slot ${slot}`),
      async clear() {
        if (uploads.count() > 0) return false
        for (const slot of removedByReset) await store.remove(slot)
        return true
      },
    },
    first() {
      const found = nextDefinition(store)
      return found && `${found.name} ${found.version}`
    },
    attachCluster: (attached) => void (cluster = attached),
    bundlesChanged: (bundled) => embedded.setBundles(bundled).catch(logFailure),
  }
}

/** The embedded definition is of the installer, or goes with the content. */
const removedByReset = ['overridden', 'update', 'platform'] as const

async function* onePart(part: UploadPart): AsyncGenerator<UploadPart> {
  yield part
}

/** Says in a refusal which part of the bundle is meant. */
function nameBundle(error: unknown): never {
  if (!(error instanceof AppError) || error.code === 'NotReady') throw error
  const { kind, message, details, retryAfterSec } = error
  throw new AppError(kind, `the definition in the bundle: ${message}`, {
    ...(details ? { details } : {}),
    ...(retryAfterSec === undefined ? {} : { retryAfterSec }),
  })
}
