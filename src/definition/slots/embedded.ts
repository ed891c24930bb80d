import { shellWord } from '../../base/printable.ts'
import type { SystemEntry } from '../../audit/own-entries.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Logger } from '../../system/log.ts'
import type { Problem } from '../definition.ts'
import type { DefinitionStore, SlotDefinition, OfferedUpdates } from './definition-store.ts'
import {
  deliveredByBundle,
  deliveredByFile,
  originOf,
  type BundledDefinition,
  type Delivered,
  type Origin,
  type Preparations,
} from './preparations.ts'

export interface EmbeddedOptions {
  /** Path of the definition of an installer; the file need not exist. */
  readonly file: string
  readonly store: DefinitionStore
  readonly preparations: Preparations
  readonly offered: OfferedUpdates
  readonly hasCluster: () => boolean
  /** Version of the daemon. A definition that another version examined is examined again. */
  readonly version: string
  readonly record: (entry: SystemEntry) => void
  readonly log: Logger
}

/**
 * The definitions that come without an upload of their own. The slot `embedded` has the newer one of the installer's file and
 * the newest content bundle with a definition; neither needs a signature of its own. While there is a cluster, a bundle that
 * is published puts its definition into the slot `update` instead.
 */
export interface Embedded {
  /**
   * Checks whether file or bundle have changed; if so, examines them. Resolves when the slots are up to date.
   * @throws AppError NotReady if the daemon stops meanwhile
   */
  refresh(): Promise<void>
  /**
   * Reports the published bundles with a definition, the newest first; they are known when the call returns. Until the first call the
   * definition of a bundle stays in its slot.
   */
  setBundles(bundled: readonly BundledDefinition[]): Promise<void>
  /** Reports a bundle that was published, unless a newer one is known. */
  addBundle(bundle: BundledDefinition): Promise<void>
  /** The archive of a definition by its `source`; undefined if it is not known now, as for a bundle before the bundles are read. */
  fileOf(source: string): string | undefined
  /** Why the delivered definitions cannot be used; empty if they can. */
  problems(): readonly Problem[]
}

interface Refusal {
  readonly source: string
  readonly code: string
  readonly problems: readonly Problem[]
}

// These say nothing about the definition: space may have been freed since, and a disk mounted.
const passing: readonly string[] = ['StorageFull', 'ENOENT']

export function createEmbedded(options: EmbeddedOptions): Embedded {
  const { file, store, preparations, offered, hasCluster, version, record, log } = options
  const refusals = new Map<Origin['kind'], Refusal>()
  /** The newest first; undefined until the room of the bundles has read them. */
  let bundles: readonly Delivered[] | undefined
  let refreshing: Promise<void> | undefined

  const refuse = (
    kind: Origin['kind'],
    { source, place }: { source: string; place: string },
    error: unknown,
  ) => {
    const { code = 'Internal', message, details = {} } = error as NodeJS.ErrnoException & { details?: object }
    const { problems } = details as { problems?: readonly Problem[] }
    const before = refusals.get(kind)
    refusals.set(kind, {
      source,
      code,
      problems: problems ?? [{ code, severity: 'error', place, message }],
    })
    if (source === before?.source && code === before.code) return
    const what = kind === 'file' ? 'the embedded definition' : 'the definition of a content bundle'
    log.warn(
      { file: place, code, reason: message },
      `${what} cannot be used; see all of it with: edgehostctl definition validate ${shellWord(place)}`,
    )
  }

  const isPassing = ({ kind }: Origin) => passing.includes(refusals.get(kind)?.code ?? '')

  /** @returns whether the definition is in the slot now; if not, `refusals` says why */
  async function put(slot: 'embedded' | 'update', delivered: Delivered): Promise<boolean> {
    const { kind, source, file: place } = delivered
    const refusal = refusals.get(kind)
    if (source === refusal?.source && !isPassing(delivered)) return false
    try {
      const definition = await preparations.put(slot, delivered)
      refusals.delete(kind)
      record(entryOf(definition, 'create', acceptance(delivered, definition)))
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // A stop says nothing about the definition either; the next start examines it again.
      if (code === 'NotReady' || !(error instanceof AppError || code === 'ENOENT')) throw error
      refuse(kind, { source, place }, error)
      return false
    }
  }

  /** Offer of the installer's file to the slot: a `Delivered`, or the content of the slot. */
  async function ofFile(held: Origin | undefined): Promise<Origin | undefined> {
    try {
      const delivered = await deliveredByFile(file, version)
      if (!delivered) refusals.delete('file')
      return delivered
    } catch (error) {
      refuse('file', { source: (error as Error).message, place: file }, error)
      // It may be the same file.
      return held?.kind === 'file' ? held : undefined
    }
  }

  /** Offer of the bundles to the slot: a `Delivered`, or the content of the slot. While there is a cluster, only the bundle that was there before. */
  function ofBundles(held: Origin | undefined): Origin | undefined {
    const own = held?.kind === 'bundle' ? held : undefined
    if (!bundles) return own
    if (bundles.length === 0) refusals.delete('bundle')
    return hasCluster() ? findBundle(own) : bundles[0]
  }

  const findBundle = (held: Origin | undefined): Delivered | undefined =>
    bundles?.find(({ bundleUid }) => bundleUid === held?.bundleUid)

  async function refreshEmbedded(): Promise<void> {
    const { source } = store.find('embedded') ?? {}
    const held = source === undefined ? undefined : originOf(source)
    const found = [await ofFile(held), ofBundles(held)].filter((each) => each !== undefined)
    for (const each of found.toSorted((one, other) => other.at - one.at)) {
      if (each.source === source) return
      if (isDelivered(each) && (await put('embedded', each))) return
      // The definition of this bundle stays in its slot until it can be examined by this version of the daemon.
      if (each.bundleUid !== '' && each.bundleUid === held?.bundleUid && isPassing(each)) return
    }
    const removed = await store.remove('embedded')
    if (removed && held && found.every(({ kind }) => kind !== held.kind))
      record(
        entryOf(removed, 'delete', `Remove the embedded definition, whose ${nouns[held.kind]} was removed`),
      )
  }

  /** Offers the definition of each bundle once, so that one that was discarded or replaced does not come back. */
  async function refreshUpdate(): Promise<void> {
    if (!bundles) return
    const [newest] = bundles
    const { source = '' } = store.find('update') ?? {}
    const own = source === '' ? undefined : originOf(source)
    if (own && !findBundle(own)) {
      // If the disk with the bundle was only not mounted, the bundle is new again; an older one is not.
      offered.set(own.at - 1)
      const removed = await store.remove('update')
      if (removed) record(entryOf(removed, 'delete', 'Remove the update, whose content bundle was removed'))
    }
    if (!newest || newest.at <= offered.until()) return
    const isInSlot = newest.bundleUid === own?.bundleUid || !hasCluster()
    if (isInSlot || (await put('update', newest))) offered.set(newest.at)
  }

  async function refreshNow(): Promise<void> {
    await refreshEmbedded()
    await refreshUpdate()
  }

  const refresh = () => (refreshing ??= refreshNow().finally(() => (refreshing = undefined)))

  async function setBundles(bundled: readonly BundledDefinition[]): Promise<void> {
    bundles = bundled.map((bundle) => deliveredByBundle(bundle, version))
    // A refresh that is running may have read the state before.
    await refreshing?.catch(() => undefined)
    await refresh()
  }

  return {
    refresh,
    setBundles,
    async addBundle(bundle) {
      const known = bundles ?? []
      if (known.every(({ at }) => at < bundle.publishedAt))
        bundles = [deliveredByBundle(bundle, version), ...known]
      // One that was reported may be on its way into its slot.
      await refreshing?.catch(() => undefined)
      await refresh()
    },
    fileOf(source) {
      const origin = originOf(source)
      return origin.kind === 'file' ? file : findBundle(origin)?.file
    },
    problems: () => [...refusals.values()].flatMap(({ problems }) => problems),
  }
}

const isDelivered = (origin: Origin): origin is Delivered => 'file' in origin

const nouns = { file: 'file', bundle: 'content bundle' } as const

function acceptance({ kind, fileName }: Delivered, { slot, name, version }: SlotDefinition): string {
  if (kind === 'file') return `Accept the embedded definition ${name} ${version}`
  const what = slot === 'embedded' ? 'embedded definition' : 'update'
  return `Accept the ${what} ${name} ${version} of the content bundle ${fileName}`
}

const entryOf = (
  { uid, name, version }: SlotDefinition,
  action: 'create' | 'delete',
  message: string,
): SystemEntry => ({
  action,
  kind: 'definition',
  resourceName: `${name} ${version}`,
  resourceUid: uid,
  message,
})
