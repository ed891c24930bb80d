import type {
  ClusterProfileDetail,
  DefinitionDiff,
  Pack,
  PackDiff,
  ProfileDiff,
  Variable,
  VariableDiff,
} from '../schemas.ts'
import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { receivedFile } from '../../upload/receive.ts'
import { replacedDefinition } from '../codes.ts'
import { labelOfDefinition, type GivenVariable } from '../definition.ts'
import { detailsFile } from '../examination/protocol.ts'
import type { ValidatedVariable } from '../rules/variables.ts'
import type { DefinitionStore, SlotDefinition } from './definition-store.ts'
import { nextSlot, type SlotName } from './slot-names.ts'
import type { Embedded } from './embedded.ts'
import type { JudgeValues } from './examiner.ts'

/**
 * Changes that an operator has to review before an update: profiles that are added, removed or changed, with their packs and
 * variables that are. In the order of the incoming definition; removed items follow. Profiles are matched by uid,
 * then by name; packs of a profile by name and display name; variables by name. Descriptions and tags of profiles, and
 * logos, are not compared.
 *
 * Both sides come from detailsOf, so secrets are masked: a change of a sensitive default is not seen, also not where
 * values of packs contain it.
 */
export function diffDefinitions(
  running: readonly ClusterProfileDetail[],
  incoming: readonly ClusterProfileDetail[],
): DefinitionDiff {
  const pairs = pairUp(running, incoming, [({ profileUid }) => profileUid, ({ profileName }) => profileName])
  return { profiles: pairs.flatMap(diffProfile) }
}

/** At least one of the two is defined. */
interface Pair<Item> {
  readonly before: Item | undefined
  readonly after: Item | undefined
}

/** Each incoming item with the running one that it replaces, then the running items that have no successor. */
function pairUp<Item>(
  running: readonly Item[],
  incoming: readonly Item[],
  keys: readonly ((item: Item) => string)[],
): Pair<Item>[] {
  const left = new Set(running)
  const replaced = new Map<Item, Item>()
  for (const keyOf of keys) {
    // Of several items with the same key, the first one counts.
    const byKey = new Map([...left].reverse().map((item) => [keyOf(item), item]))
    byKey.delete('')
    for (const item of incoming) {
      const before = replaced.has(item) ? undefined : byKey.get(keyOf(item))
      if (before !== undefined && left.delete(before)) replaced.set(item, before)
    }
  }
  return [
    ...incoming.map((after) => ({ before: replaced.get(after), after })),
    ...[...left].map((before) => ({ before, after: undefined })),
  ]
}

function diffProfile({ before, after }: Pair<ClusterProfileDetail>): ProfileDiff[] {
  const shown = after ?? before
  if (shown === undefined) return []
  const byName = [({ name }: { name: string }) => name]
  const packs = pairUp(before?.packs ?? [], after?.packs ?? [], [packKey]).flatMap(diffPack)
  const variables = pairUp(before?.variables ?? [], after?.variables ?? [], byName).flatMap(diffVariable)
  const fields = before && after ? differing(before, after, ['profileUid', 'profileName', 'profileType']) : []
  const versions = versionsOf(before?.profileVersion, after?.profileVersion)
  const isSameVersion = before?.profileVersion === after?.profileVersion
  if (isSameVersion && [packs, variables, fields].every(({ length }) => length === 0)) return []
  const { profileUid, profileName } = shown
  return [{ profileUid, profileName, change: changeOf(before, after), ...versions, fields, packs, variables }]
}

const packKey = ({ name, displayName = '' }: Pack) => `${name}\0${displayName}`

function diffPack({ before, after }: Pair<Pack>): PackDiff[] {
  const { name = '', displayName } = after ?? before ?? {}
  const versions = versionsOf(before?.version, after?.version)
  const fields = before && after ? differing(before, after, ['layer', 'images', 'guessedImages']) : []
  const valuesChanged = before !== undefined && after !== undefined && before.values !== after.values
  if (before?.version === after?.version && !valuesChanged && fields.length === 0) return []
  const named = { name, ...(displayName === undefined ? {} : { displayName }) }
  return [{ ...named, change: changeOf(before, after), ...versions, valuesChanged, fields }]
}

const variableFields = [
  ...(['displayName', 'description', 'format', 'inputType', 'regex', 'required', 'hidden'] as const),
  ...(['immutable', 'isSensitive', 'defaultValue', 'options'] as const),
]

function diffVariable({ before, after }: Pair<Variable>): VariableDiff[] {
  const name = (after ?? before)?.name ?? ''
  const fields = before && after ? differing(before, after, variableFields) : []
  if (before && after && fields.length === 0) return []
  const asked = after && { required: after.required === true, hasDefault: hasDefault(after) }
  return [{ name, change: changeOf(before, after), ...asked, fields }]
}

function hasDefault({ defaultValue, inputType, options = [] }: Variable): boolean {
  if (defaultValue !== undefined && defaultValue !== '') return true
  return inputType === 'dropdown' && options.some((option) => option.default === true)
}

const changeOf = (before: unknown, after: unknown) =>
  before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'

const versionsOf = (fromVersion: string | undefined, toVersion: string | undefined) => ({
  ...(fromVersion === undefined ? {} : { fromVersion }),
  ...(toVersion === undefined ? {} : { toVersion }),
})

/** Names of the fields that differ. Empty, false and absent all mean: not set. */
function differing<Item extends object>(
  before: Item,
  after: Item,
  names: readonly (keyof Item & string)[],
): string[] {
  const settled = (value: unknown) =>
    JSON.stringify((Array.isArray(value) && value.length === 0 ? '' : value) || '')
  return names.filter((name) => settled(before[name]) !== settled(after[name]))
}

/** A reply that is the content of a file with text before and after it. */
interface StoredReply {
  readonly sizeBytes: number
  /** The caller has to read or destroy it. */
  readonly content: Readable
}

/** Replies from files that never change. The file that was last requested stays in memory for a while. */
export interface StoredReplies {
  /**
   * @param name of the file; never reused for another one
   * @param open opens it; undefined if it was removed
   * @returns undefined if the file was removed
   */
  reply(order: {
    readonly name: string
    readonly open: () => Promise<FileHandle | undefined>
    readonly before: string
    readonly after: string
  }): Promise<StoredReply | undefined>
}

interface Body {
  readonly sizeBytes: number
  pieces(): Iterable<Buffer> | AsyncIterable<Buffer>
  close(): void
}

// While one piece is sent the next is encrypted: 7 MB take half as long as in one piece.
const pieceBytes = 131_072
// A client usually asks again soon. If the file were read each time, V8 would run a full garbage collection at almost
// every reply.
const keptMs = 60_000
const keptBytes = 16_777_216

export function createStoredReplies(): StoredReplies {
  let kept: { readonly name: string; readonly body: Body } | undefined
  const forget = setTimeout(() => (kept = undefined), keptMs).unref()

  async function find(name: string, open: () => Promise<FileHandle | undefined>): Promise<Body | undefined> {
    forget.refresh()
    if (kept?.name === name) return kept.body
    const file = await open()
    if (!file) return undefined
    const { size } = await file.stat()
    if (size > keptBytes) return onDisk(file, size)
    const body = inMemory(await file.readFile().finally(() => file.close()))
    kept = { name, body }
    return body
  }

  return {
    async reply({ name, open, before, after }) {
      const body = await find(name, open)
      return body && wrap(body, Buffer.from(before), Buffer.from(after))
    },
  }
}

/** A reply without a file. */
export function textReply(text: string): StoredReply {
  const content = Buffer.from(text)
  return { sizeBytes: content.length, content: Readable.from([content], { objectMode: false }) }
}

function wrap(body: Body, before: Buffer, after: Buffer): StoredReply {
  async function* pieces(): AsyncGenerator<Buffer> {
    yield before
    yield* body.pieces()
    yield after
  }
  const content = Readable.from(pieces(), { objectMode: false, highWaterMark: pieceBytes })
  // Also if the client has not started to read.
  content.once('close', () => body.close())
  return { sizeBytes: before.length + body.sizeBytes + after.length, content }
}

const inMemory = (content: Buffer): Body => ({
  sizeBytes: content.length,
  *pieces() {
    for (let at = 0; at < content.length; at += pieceBytes) yield content.subarray(at, at + pieceBytes)
  },
  close: () => undefined,
})

const onDisk = (file: FileHandle, sizeBytes: number): Body => ({
  sizeBytes,
  pieces: () => file.createReadStream({ highWaterMark: pieceBytes, autoClose: false }),
  close: () => void file.close(),
})

/** The definitions of this host, for the API. */
export interface Slots {
  /**
   * The content of a slot; an empty one has no profiles.
   * @param isHeld whether the client already holds the reply with this ETag
   */
  details(slot: SlotName, isHeld: (etag: string) => boolean): Promise<SlotDetails>
  /** The profiles of a definition; undefined where it is gone. */
  profilesOf(uid: string): Promise<ClusterProfileDetail[] | undefined>
  /** Name, version and sum of the definition of each slot, for the audit trail. */
  named(): Readonly<Record<string, string>>
  /** The handle of a definition: `archiveUploadPath` of later calls. */
  pathOf(definition: SlotDefinition): string
  /**
   * The archive of a definition.
   * @param path a handle, or the path of a slot
   * @throws AppError BadRequest if the path is neither, NotReady if the content that has the archive is not open yet
   */
  archiveOf(path: string): Promise<DefinitionArchive>
  /** Discards the waiting update. @returns the removed definition */
  removeUpdate(): Promise<SlotDefinition | undefined>
  /**
   * Judges values for the variables of a definition.
   * @param path a handle, or the path of a slot; empty: the definition that comes next: the waiting update, the uploaded one, the one of the host
   * @throws AppError BadRequest if the path is neither, or if the judgement would take too much time or memory
   */
  validate(path: string, given: readonly GivenVariable[]): Promise<readonly ValidatedVariable[]>
}

interface SlotDetails {
  readonly etag: string
  /** The JSON of a `ClusterConfigArchiveDetails`; absent if the client already holds it. */
  readonly reply?: StoredReply
}

/** A definition in a slot, and its archive as it lies there: it may be replaced or removed at any time. */
interface DefinitionArchive {
  readonly file: string
  /** The file with its details for the API: `ClusterProfileDetail[]`. */
  readonly details: string
  readonly definition: SlotDefinition
}

interface SlotsOptions {
  readonly store: DefinitionStore
  readonly embedded: Embedded
  readonly judgeValues: JudgeValues
  /** Profiles of the cluster; undefined if there is no cluster. */
  readonly running: () => Promise<readonly ClusterProfileDetail[] | undefined>
}

/** The definition in the `nextSlot`; undefined where the host has none. */
export function nextDefinition(store: Pick<DefinitionStore, 'find'>): SlotDefinition | undefined {
  const slot = nextSlot((each) => store.find(each)?.addedAt)
  return slot && store.find(slot)
}

export function createSlots({ store, embedded, judgeValues, running }: SlotsOptions): Slots {
  const replies = createStoredReplies()

  const pathOf = ({ uid }: SlotDefinition) => join(store.folder, uid)

  async function find(slot: SlotName): Promise<SlotDefinition | undefined> {
    if (slot === 'embedded') await embedded.refresh()
    return store.find(slot)
  }

  /** A handle is compared and never opened as a path, so it cannot reach other files. */
  async function resolve(path: string): Promise<SlotDefinition> {
    await embedded.refresh()
    const found = store.list().find((each) => path === pathOf(each) || path === join(store.folder, each.slot))
    if (found) return found
    throw new AppError(
      generalErrors.BadRequest,
      'archiveUploadPath names no definition of this host; take it from the reply of the upload or from GET /v1/edge-mgmt/clusters/archive/{embedded,overridden,update}/details',
      { details: { field: 'archiveUploadPath' } },
    )
  }

  async function next(): Promise<SlotDefinition> {
    await embedded.refresh()
    const found = nextDefinition(store)
    if (found) return found
    throw refusedField('archiveUploadPath', 'is missing, and this host has no definition yet: upload one')
  }

  /** The details without the profiles. */
  function headOf(slot: SlotName, definition: SlotDefinition | undefined) {
    if (!definition)
      return { archiveUploadPath: '', problems: slot === 'embedded' ? embedded.problems() : [] }
    const { uid, sha256, sizeBytes, fileName, problems, addedAt } = definition
    return {
      archiveUploadPath: pathOf(definition),
      uid,
      sha256,
      sizeBytes,
      fileName,
      problems,
      uploadedAt: new Date(addedAt).toISOString(),
    }
  }

  async function diffOf({ uid }: SlotDefinition) {
    const now = await running()
    const incoming = now && (await profilesOf(uid))
    return now && incoming ? { diff: diffDefinitions(now, incoming) } : {}
  }

  async function readJson<Content>(uid: string, name: string): Promise<Content | undefined> {
    const file = await store.open(uid, name)
    if (!file) return undefined
    try {
      return JSON.parse(await file.readFile('utf8')) as Content
    } finally {
      await file.close()
    }
  }

  const profilesOf = (uid: string) => readJson<ClusterProfileDetail[]>(uid, detailsFile)

  return {
    pathOf,
    profilesOf,
    named: () =>
      Object.fromEntries(store.list().map((definition) => [definition.slot, labelOfDefinition(definition)])),
    async details(slot, isHeld) {
      const definition = await find(slot)
      const head = headOf(slot, definition)
      const differences = slot === 'update' && definition ? await diffOf(definition) : {}
      const text = JSON.stringify({ ...head, ...differences })
      // The profiles need no hash: the profiles of a uid never change.
      const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 32)}"`
      if (isHeld(etag)) return { etag }
      const before = `${text.slice(0, -1)},"clusterProfileDetails":`
      if (!definition) return { etag, reply: textReply(`${before}[]}`) }
      const { uid } = definition
      const reply = await replies.reply({
        name: uid,
        before,
        after: '}',
        open: () => store.open(uid, detailsFile),
      })
      if (reply) return { etag, reply }
      if (store.find(slot)?.uid === uid)
        throw new Error(`the files of ${join(store.folder, uid)} are missing; upload the definition again`)
      // The definition was replaced meanwhile.
      return this.details(slot, isHeld)
    },
    async archiveOf(path) {
      const definition = await resolve(path)
      const { uid, source } = definition
      const file = source === '' ? join(store.folder, uid, receivedFile) : embedded.fileOf(source)
      if (file !== undefined) return { file, details: join(store.folder, uid, detailsFile), definition }
      throw new AppError(
        generalErrors.NotReady,
        'the content bundle with this definition is not read yet; try again, or see why: journalctl -u edgehostd -g content',
        { retryAfterSec: 5 },
      )
    },
    removeUpdate: () => store.remove('update'),
    async validate(path, given) {
      const { uid } = path === '' ? await next() : await resolve(path)
      const judged = await judgeValues(uid, given)
      if (judged === undefined) throw replacedDefinition()
      return judged
    },
  }
}
