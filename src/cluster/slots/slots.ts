import { join } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import type { DeclaringProfile } from '../definition.ts'
import { detailsFile, profilesFile } from '../examination/protocol.ts'
import type { GivenVariable, ValidatedVariable, VariableRules } from '../rules/variables.ts'
import type { ClusterProfileDetail } from '../schemas.ts'
import type { DefinitionStore } from './definition-store.ts'
import { slotNames, type SlotDefinition, type SlotName } from './definition-table.ts'
import { diffDefinitions } from './diff.ts'
import type { Embedded } from './embedded.ts'

/** The definitions of this host, for the API. */
export interface Slots {
  /** What is in a slot, as the JSON of a `ClusterConfigArchiveDetails`; an empty slot has no profiles. */
  details(slot: SlotName): Promise<Buffer>
  /** The handle of a definition: `archiveUploadPath` of later calls. */
  pathOf(definition: SlotDefinition): string
  /** Throws the pending update away. @returns what it was */
  removeUpdate(): Promise<SlotDefinition | undefined>
  /**
   * Judges values for the variables of a definition.
   * @param path a handle, or the path of a slot
   * @throws AppError BadRequest when it is neither
   */
  validate(path: string, given: readonly GivenVariable[]): Promise<ValidatedVariable[]>
}

export interface SlotsOptions {
  readonly store: DefinitionStore
  readonly embedded: Embedded
  /** Profiles of the running cluster; nothing where there is no cluster. */
  readonly running: () => readonly ClusterProfileDetail[] | undefined
}

// One a slot. Patterns are compiled when rules are read, which takes longer than to use them.
const keptRules = slotNames.length

export function createSlots({ store, embedded, running }: SlotsOptions): Slots {
  const rules = new Map<string, VariableRules>()

  const pathOf = ({ uid }: SlotDefinition) => join(store.folder, uid)

  async function find(slot: SlotName): Promise<SlotDefinition | undefined> {
    if (slot === 'embedded') await embedded.refresh()
    return store.find(slot)
  }

  /** A handle is compared and never opened, so it leads nowhere else. */
  async function resolve(path: string): Promise<SlotDefinition> {
    await embedded.refresh()
    const found = store.list().find((each) => path === pathOf(each) || path === join(store.folder, each.slot))
    if (found) return found
    throw new AppError(
      'BadRequest',
      'archiveUploadPath names no definition of this host; take it from the reply of the upload or from GET /v1/edge-mgmt/clusters/archive/{embedded,overridden,update}/details',
      { details: { field: 'archiveUploadPath' } },
    )
  }

  async function rulesOf(definition: SlotDefinition): Promise<VariableRules> {
    const kept = rules.get(definition.uid)
    if (kept) return kept
    const text = await store.read(definition.uid, profilesFile)
    if (text === undefined) throw gone()
    // With the engine of patterns, which is larger than all else here: when the first values are judged.
    const { readVariables } = await import('../rules/variables.ts')
    const read = readVariables(JSON.parse(text.toString()) as DeclaringProfile[])
    rules.set(definition.uid, read)
    for (const uid of [...rules.keys()].slice(0, -keptRules)) rules.delete(uid)
    return read
  }

  return {
    pathOf,
    async details(slot) {
      const definition = await find(slot)
      const problems = definition?.problems ?? (slot === 'embedded' ? embedded.problems() : [])
      if (!definition) return compose({ archiveUploadPath: '', problems }, Buffer.from('[]'))
      const profiles = await store.read(definition.uid, detailsFile)
      // Replaced between two looks.
      if (profiles === undefined) return this.details(slot)
      const now = slot === 'update' ? running() : undefined
      const { uid, sha256, sizeBytes, fileName, addedAt } = definition
      const head = {
        archiveUploadPath: pathOf(definition),
        ...{ uid, sha256, sizeBytes, fileName, problems },
        uploadedAt: new Date(addedAt).toISOString(),
        ...(now
          ? { diff: diffDefinitions(now, JSON.parse(profiles.toString()) as ClusterProfileDetail[]) }
          : {}),
      }
      return compose(head, profiles)
    },
    removeUpdate: () => store.remove('update'),
    async validate(path, given) {
      return (await rulesOf(await resolve(path))).validate(given)
    },
  }
}

/** Profiles may be megabytes; they go out as they lie on the disk, since text would be decoded and encoded again. */
const compose = (head: object, profiles: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(`${JSON.stringify(head).slice(0, -1)},"clusterProfileDetails":`),
    profiles,
    Buffer.from('}'),
  ])

const gone = () =>
  new AppError(
    'BadRequest',
    'archiveUploadPath names a definition that has just been replaced; take the new one',
    {
      details: { field: 'archiveUploadPath' },
    },
  )
