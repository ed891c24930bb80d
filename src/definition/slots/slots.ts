import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { receivedFile } from '../../upload/receive.ts'
import { replacedDefinition } from '../codes.ts'
import { labelOfDefinition } from '../definition.ts'
import { detailsFile } from '../examination/protocol.ts'
import type { GivenVariable, ValidatedVariable } from '../rules/variables.ts'
import type { ClusterProfileDetail } from '../schemas.ts'
import type { DefinitionStore } from './definition-store.ts'
import type { SlotDefinition, SlotName } from './definition-table.ts'
import { diffDefinitions } from './diff.ts'
import type { Embedded } from './embedded.ts'
import type { JudgeValues } from './judge-values.ts'
import { createStoredReplies, textReply, type StoredReply } from './stored-reply.ts'

/** The definitions of this host, for the API. */
export interface Slots {
  /**
   * What is in a slot; an empty one has no profiles.
   * @param isHeld whether the client already holds the reply with this ETag
   */
  details(slot: SlotName, isHeld: (etag: string) => boolean): Promise<SlotDetails>
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
   * @param path a handle, or the path of a slot; empty: the definition that comes next: the waiting update, the uploaded one, that of the host
   * @throws AppError BadRequest if the path is neither, or if the judgement would take too much time or memory
   */
  validate(path: string, given: readonly GivenVariable[]): Promise<readonly ValidatedVariable[]>
}

export interface SlotDetails {
  readonly etag: string
  /** The JSON of a `ClusterConfigArchiveDetails`; absent if the client already holds it. */
  readonly reply?: StoredReply
}

/** A definition in a slot, and its archive as it lies there: it may be replaced or removed at any time. */
export interface DefinitionArchive {
  readonly file: string
  /** The file with what the API shows of it: `ClusterProfileDetail[]`. */
  readonly details: string
  readonly definition: SlotDefinition
}

export interface SlotsOptions {
  readonly store: DefinitionStore
  readonly embedded: Embedded
  readonly judgeValues: JudgeValues
  /** Profiles of the cluster; undefined if there is no cluster. */
  readonly running: () => Promise<readonly ClusterProfileDetail[] | undefined>
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
    const found = store.find('update') ?? store.find('overridden') ?? store.find('embedded')
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
      ...{ uid, sha256, sizeBytes, fileName, problems },
      uploadedAt: new Date(addedAt).toISOString(),
    }
  }

  async function diffOf({ uid }: SlotDefinition) {
    const now = await running()
    const incoming = now && (await readJson<ClusterProfileDetail[]>(uid, detailsFile))
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

  return {
    pathOf,
    named: () =>
      Object.fromEntries(store.list().map((definition) => [definition.slot, labelOfDefinition(definition)])),
    async details(slot, isHeld) {
      const definition = await find(slot)
      const head = headOf(slot, definition)
      const differences = slot === 'update' && definition ? await diffOf(definition) : {}
      const text = JSON.stringify({ ...head, ...differences })
      // The profiles need no hash: those of a uid never change.
      const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 32)}"`
      if (isHeld(etag)) return { etag }
      const before = `${text.slice(0, -1)},"clusterProfileDetails":`
      if (!definition) return { etag, reply: textReply(`${before}[]}`) }
      const { uid } = definition
      const reply = await replies.reply({
        ...{ name: uid, before, after: '}' },
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
