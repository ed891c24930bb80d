import type { Context } from '../../ctl/client.ts'
import { clusterPath, readDetails } from '../../ctl/cluster.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import type { KnownProfile } from '../../ctl/given-values.ts'
import {
  ofSlot,
  placeDefinition,
  profilesOf,
  readDefinitionFile,
  readSlot,
  titleOf,
  type Chosen,
} from '../../definition/commands/upload.ts'
import { type Present, shownOf } from './change-host.ts'
import type { ClusterConfigArchiveDetails } from '../../definition/schemas.ts'
import { nextSlot, slotNames, type ShownSlot } from '../../definition/slots/slot-names.ts'
import type { ClusterCurrentApplications } from '../packs/schemas.ts'

type ChooseContext = Context<'definition' | 'file' | 'signature' | 'update' | 'yes'>

/**
 * The definition that a change is made with: the file of --definition, which is sent into the slot update; otherwise the one in that slot,
 * where only values are set without it; otherwise the present one. Asks before a definition that waits in the slot is replaced.
 * @param hasValues whether values are set
 * @throws Failure
 */
export async function chooseDefinition(
  context: ChooseContext,
  present: Present,
  hasValues: boolean,
): Promise<Chosen> {
  const { client, line } = context
  const { update, signature, file: formerName, definition = formerName } = line.options
  const { archiveUploadPath: presentPath = '' } = present.document.spec ?? {}
  if (formerName !== undefined && definition !== formerName)
    throw new Failure('usage', '--definition and --file mean the same; leave out --file')
  if (definition !== undefined && update !== undefined)
    throw new Failure('usage', '--definition puts its file into the slot update; leave out --update')
  requireSigned(definition, signature)
  if (definition !== undefined) {
    const file = await readDefinitionFile(definition, formerName === undefined ? '--definition' : '--file')
    // The cluster has a copy of its own of the definition that it was made with.
    return placeDefinition(context, { file, slot: 'update', keptElsewhere: presentPath })
  }
  const slot = await readSlot(client, 'update')
  const isWaiting = slot.archiveUploadPath !== '' && slot.archiveUploadPath !== presentPath
  if (update !== undefined && slot.archiveUploadPath === '')
    throw new Failure('failed', 'the slot update of the host is empty; give a definition: --definition FILE')
  if (isWaiting && (!hasValues || update !== undefined)) return ofSlot(slot, [])
  return {
    path: presentPath,
    hints: isWaiting
      ? [`The definition ${titleOf(slot)} in the slot update is not part of this; with --update it is.`]
      : [],
    profiles: async () =>
      slot.archiveUploadPath === presentPath ? profilesOf(slot) : presentProfiles(client, present),
  }
}

/** @throws Failure usage for a signature without its file */
function requireSigned(definition: string | undefined, signature: string | undefined): void {
  if (definition === undefined && signature !== undefined)
    throw new Failure('usage', '--signature belongs to --definition; add --definition')
}

/** Profiles of the active revision; a waiting one may differ. */
async function presentProfiles(
  client: Context['client'],
  present: Present,
): Promise<readonly KnownProfile[] | undefined> {
  if (shownOf(present)?.isActive !== true) return undefined
  const { clusterProfileTemplates } = await client.get<ClusterCurrentApplications>(
    `${clusterPath}/applications`,
    ['clusterProfileTemplates'],
  )
  return clusterProfileTemplates
}

/**
 * The definition that a cluster is created with: the file of --definition, which is sent into the slot overridden unless the host has it in one
 * of its slots; otherwise the one that comes next on the host. Asks before a definition in the slot is replaced.
 * @throws Failure, also where the host has no definition, or would take that file for an update of the cluster that it has
 */
export async function definitionForCreation(
  context: Context<'definition' | 'signature' | 'yes'>,
): Promise<Chosen> {
  const { client, line } = context
  const { definition, signature } = line.options
  requireSigned(definition, signature)
  const file = definition === undefined ? undefined : await readDefinitionFile(definition, '--definition')
  const known = new Map<ShownSlot, ClusterConfigArchiveDetails>()
  for (const slot of slotNames) {
    const present = await readSlot(client, slot)
    if (present.archiveUploadPath === '' || (file !== undefined && present.sha256 !== file.sha256)) continue
    known.set(slot, present)
  }
  const slot = nextSlot((each) => {
    const found = known.get(each)
    return found && new Date(found.uploadedAt ?? 0).getTime()
  })
  const present = slot && known.get(slot)
  if (slot && present)
    return ofSlot(present, [
      file === undefined
        ? `The definition ${titleOf(present)} in the slot ${slot} of the host is taken.`
        : `The definition was in the slot ${slot} of the host already.`,
    ])
  if (file === undefined)
    throw new Failure(
      'failed',
      'this host has no definition yet; add --definition FILE, or send one first: edgehostctl definition upload FILE',
    )
  if ((await readDetails(context)) !== undefined)
    throw new Failure(
      'failed',
      'this host has a cluster already, and nothing was sent; to change it: edgehostctl cluster apply --definition FILE',
    )
  return placeDefinition(context, { file, slot: 'overridden' })
}
