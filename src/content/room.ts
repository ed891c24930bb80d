// The store (`content/store`) is a folder, `content.directory`, by default `content/` in the state folder. Its files are the truth; `content.db` is
// an index of them (ADR 20).
//
// - `oci-layout`, `index.json`: make the folder an OCI image layout for people and skopeo; written after each change, read only to tell whose they
//   are
// - `blobs/sha256/<hex>`: blobs that a record names, equal ones once
// - `bundles/<uid>.jsonl`: the record of a bundle: its facts, its entries, its blobs, and a checksum. A bundle is published while this exists
// - `bundles/*.jsonl.damaged`: a damaged record; while there is one, no blob is removed
// - `uploads/<uid>`: an upload; `publishing` in it says that its blobs are being moved into the store
// - `damaged/<hex>`: a damaged blob, moved out of `blobs`; empty if nothing is left of it
// - `pins.json`, `check.json`: content that other rooms need; progress of the check of all blobs
// - `last-publication`: number of the newest publication: the time, or one more than the number before where the clock was set back
//
// - `open-store.ts` opens the store after the start, or at the first request that needs it: `reconcile.ts` brings the index up to date with the
//   records, and makes folder and index agree on the blobs. Every change has the lock of the store. After an error of the disk the next change does
//   both again first.
// - `own-folder.ts` checks before each opening that the folder is one of a store, or has nothing that a store would remove. It is one if it has a
//   record, or the folders that a store makes first and no `index.json` of another program. Else the content is not used.
// - Long work is done without the lock: a bundle and the definition in it are examined before (`publication.ts`), and the definitions
//   are notified of the newest bundle after (`definitions.ts`).
// - All long work on the index is done in slices of 8 ms (`base/slices.ts`); queries over many rows run in a thread.
// - An upload holds hard links of the blobs that it shares with bundles, so a deletion cannot take them from it.
// - Of several bundles with one tag the newest by the number of its publication has it (`index-database.ts`, `publication.ts`); the answer is
//   computed at each read, so the tag falls back when a bundle goes.
// - `find.ts` is the interface for other rooms: `find`, `pin`, `unpin`. A bundle is pinned if it alone has a pinned entry whole. The cluster keeps
//   the digests that it has pinned in its row too, and pins them again at the start and every five minutes (`renewPins`), so that neither a damaged
//   `pins.json` nor another disk loses them.
// - An upload replaces blobs that the disk has altered without notice: `unpack` links a stored blob only after reading it, `reconcile.ts` reads the
//   stored copy of a blob that an upload has as a file of its own, and all blobs of a bundle that is started again, and sets damaged ones aside.
// - `check-blobs.ts` reads all blobs again in `content.check.days`, with the program `content.cjs`. A damaged blob is set aside. It is missing for
//   uploads then, so any upload that has it repairs it.
// - `registry` is an app with a listener of its own (ADR 23). `pull-index.ts` finds the repository that a client means and asks the index,
//   `app.ts` answers for one digest, and `send-file.ts` sends bytes with a bounded amount of memory. A blob that is missing, cut off or altered is
//   404, and is read again at once (`damage.ts`); one that is deleted during a pull is sent to its end.
// - `commands/registry` makes the files of container runtimes from the registry in the API, with a pure function for each runtime. The
//   daemon writes nothing outside of its state folder. Where a runtime allows it, images come from this host only: containerd has the registry as
//   `server` too, and podman has it as `location`, not as a mirror, since after a mirror it asks the internet.
// - The root hands in the slots for definitions in bundles (`store/definitions.ts`): the room may not use `definition`.

import type { SystemEntry } from '../audit/own-entries.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import { fingerprintOf, type SigningKey } from '../upload/signing.ts'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientOf } from '../base/client.ts'
import type { FiguresOf, Ground, ResetPart, Room } from '../root/room.ts'
import type { about } from './about.ts'
import { createBundles } from './bundles.ts'
import type { ContentSettings } from './config.ts'
import { createContentProgram } from './program/content-program.ts'
import { createStoredImages, type StoredImages } from './reads/stored-images.ts'
import {
  createRegistry,
  type Registry,
  type RegistryCertificate,
  type RegistryOptions,
} from './registry/registry.ts'
import { bundleRoutes, registryRoutes, signingKeyRoutes } from './routes.ts'
import { createBlobCheck } from './store/check-blobs.ts'
import type { IndexedBundle } from './store/content-index.ts'
import type { ContentDefinitions } from './store/definitions.ts'
import { createContentAccess, type ContentAccess } from './store/find.ts'
import { contentRoot, requireMount } from './store/folder.ts'
import { createContentStore } from './store/open-store.ts'
import { createUploads } from './uploads/uploads.ts'

/**
 * Returns since when this host has had its key, and records a change of the key in the trail.
 * @param key the configured key, if any
 * @returns milliseconds since 1970, UTC; undefined without a key
 */
function noteSigningKey(
  key: SigningKey | undefined,
  {
    database: { sql, transaction },
    record,
    clock,
  }: {
    readonly database: Database
    readonly record: (entry: SystemEntry) => void
    readonly clock: Pick<Clock, 'now'>
  },
): number | undefined {
  const known = sql.prepare('SELECT fingerprint, since FROM signing_key').get() as
    { fingerprint: string; since: number } | undefined
  const fingerprint = key && fingerprintOf(key)
  if (known?.fingerprint === fingerprint) return known?.since
  const since = clock.now()
  transaction(() => {
    sql.exec('DELETE FROM signing_key')
    if (fingerprint !== undefined)
      sql.prepare('INSERT INTO signing_key VALUES (1, ?, ?)').run(fingerprint, since)
  })
  record({
    action: 'update',
    kind: 'signing-key',
    resourceUid: fingerprint ?? '',
    message: key
      ? `Accept only uploads signed by a key of type ${key.kind}`
      : 'Accept uploads without a signature',
  })
  return key && since
}

interface ContentOptions {
  /** The public key that verifies uploads; undefined if they need no signature. */
  readonly signingKey: SigningKey | undefined
  /** Path of `content.cjs`. */
  readonly program: string
  /** The slots for definitions in bundles. */
  readonly definitions: ContentDefinitions
  /** Architecture of this host, as OCI names it: amd64, arm64. */
  readonly architecture: string
  /** Id of this boot of the kernel. */
  readonly bootId: string
  /** Names the holders of a bundle, beside pins; such a bundle is not deleted. */
  readonly holdersOf?: (bundle: IndexedBundle) => readonly string[]
  /** For a registry that other hosts may reach. */
  readonly certificate: RegistryCertificate
  /** The client that an address belongs to. */
  readonly clientOf: ClientOf
  /** The flow of all servers of this process; the default is one of the registry's own. */
  readonly flow?: RegistryOptions['flow']
}

/** The room, and the interface of the content for other rooms. */
export interface ContentRoom extends Room, ContentAccess {
  readonly registry: Pick<Registry, 'state'>
  readonly images: StoredImages
  readonly resetPart: ResetPart
}

/** Creates the room of the content of this host. */
export function createContent(
  ground: Ground<{ readonly content: ContentSettings }>,
  own: ContentOptions,
): ContentRoom {
  const { stateDirectory, runner, listTokens, stopping, clock, log, anonymousLog } = ground
  const { signingKey: key, definitions, architecture, bootId, certificate, clientOf, flow } = own
  const settings = ground.config.content
  const since = noteSigningKey(key, ground)
  const root = contentRoot(settings.directory, stateDirectory)
  const program = createContentProgram({ runner, program: own.program, log })
  const requirePlace = async () => {
    if (!settings.requireMount) return
    await mkdir(root, { recursive: true, mode: 0o700 })
    await requireMount(root)
  }
  const store = createContentStore({
    root,
    requirePlace,
    reserve: settings.reserve,
    indexFile: join(stateDirectory, 'content.db'),
    bootId,
    program,
    verify: program.verify,
    runner,
    definitions,
    clock,
    log,
  })
  const bundles = createBundles({
    store,
    architecture,
    holdersOf: own.holdersOf ?? (() => []),
  })
  const check = createBlobCheck({ store, program, settings: settings.check, clock })
  const uploads = createUploads({
    store,
    program,
    bootId,
    settings: settings.upload,
    signingKey: key,
    listTokens,
    stopping,
    clock,
    log,
  })
  const registry = createRegistry({
    settings: settings.registry,
    checkRate: settings.check.bytesPerSecond,
    stateDirectory,
    store,
    program,
    certificate,
    clientOf,
    stopping,
    flow,
    log,
    anonymousLog,
  })
  // The store has logged why it could not be opened.
  const open = () => store.open().catch(() => undefined)
  let wasTried = false

  return {
    ...createContentAccess(store),
    registry,
    images: createStoredImages({
      store,
      architecture,
      isServed: settings.registry.enabled,
    }),
    resetPart: {
      async describe() {
        await store.open()
        const unfinished = await uploads.unfinished()
        return [
          ...store
            .index()
            .list()
            .map(({ name, uid }) => `the bundle ${name} (${uid})`),
          ...(unfinished === 0 ? [] : [`unfinished uploads: ${unfinished}`]),
        ]
      },
      async clear() {
        await store.open()
        if (!(await uploads.removeAll())) return false
        for (const { uid } of store.index().list()) await bundles.remove(uid, stopping)
        return true
      },
    },
    async routes(app) {
      await signingKeyRoutes(app, { signing: key && { key, since: since ?? clock.now() } })
      await bundleRoutes(app, { bundles, listTokens })
      await registryRoutes(app, {
        registry,
        store,
        certificate: () => certificate.material().cert,
      })
      await uploads.routes(app)
    },
    jobs: [
      {
        name: 'content-recovery',
        schedule: '*/30 * * * * *',
        stuckAfterMs: 3_600_000,
        // The store has logged why it still cannot be used.
        run: () => store.recover().catch(() => undefined),
      },
      { name: 'content-sweep', schedule: '17 * * * *', stuckAfterMs: 6 * 3_600_000, run: store.sweep },
      {
        name: 'content-check',
        schedule: '*/10 * * * *',
        // A blob of 100 GB at the lowest useful rate.
        stuckAfterMs: 2 * 86_400_000,
        run: () => check.run(stopping),
      },
      ...uploads.jobs,
    ],
    async figures(): Promise<FiguresOf<typeof about.families>> {
      await open()
      const totals = store.totals()
      return {
        edgehostd_content_bundles: totals && store.index().list().length,
        edgehostd_content_stored_bytes: totals?.bytes,
        edgehostd_content_damaged_blobs: totals?.damagedBlobs,
        edgehostd_content_incomplete: totals && Number(!store.isComplete()),
        edgehostd_content_checked_bytes_total: check.readBytes(),
        ...registry.figures(),
      }
    },
    checks: [
      { name: 'content', kind: 'ready', holds: store.isUsable },
      // Unreadable content, as on a disk that is not mounted, is reported when it can.
      { name: 'content-definitions', kind: 'ready', holds: () => store.isAnnounced() || wasTried },
    ],
    states: [
      ...uploads.states,
      {
        type: 'content',
        access: 'viewer',
        paths: ['bundles', 'images', 'usage'].map((name) => `/v1/edge-mgmt/content/${name}`),
        async read() {
          await store.open()
          const list = store.index().list()
          const { bytes = 0, damagedBlobs = 0 } = store.totals() ?? {}
          return { bundles: list.length, storedBytes: bytes, damagedBlobs }
        },
        behind: () =>
          store
            .index()
            .list()
            .map(({ uid }) => uid),
      },
    ],
    busy: uploads.busy,
    prepare: requirePlace,
    start: registry.start,
    background() {
      // Where it cannot be opened, the store has logged why, and the hourly job of the uploads tries again.
      const opened = store.open().then(uploads.background, () => undefined)
      void opened.finally(() => (wasTried = true))
    },
    reload: registry.reload,
    async stop() {
      await registry.stop()
      await uploads.stop()
      await program.stop()
      await store.close()
    },
  }
}
