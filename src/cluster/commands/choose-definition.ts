import type { Context } from '../../ctl/context.ts'
import { confirm } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { moment, oneLine, wrapLines } from '../../ctl/text.ts'
import type { ClusterConfigArchiveDetails } from '../../definition/schemas.ts'
import type { ServiceStatus } from '../../service/schemas.ts'
import type { ClusterCurrentApplications } from '../packs/schemas.ts'
import { shownOf, type Present } from './change-host.ts'
import type { KnownProfile } from '../../ctl/given-values.ts'
import { clusterPath } from '../../ctl/cluster-details.ts'
import { readDefinitionFile, uploadDefinition } from './upload-definition.ts'

const archivePath = '/v1/edge-mgmt/clusters/archive/update'
const statusPath = '/v1/edge-mgmt/edgehosts/current/status'

/** The definition that a change is made with. */
export interface Chosen {
  /** `archiveUploadPath`. */
  readonly path: string
  /** Its profiles, for values; undefined where the host does not tell them. */
  profiles(): Promise<readonly KnownProfile[] | undefined>
  /** What was uploaded for it, or is left out; lines for people. */
  readonly hints: readonly string[]
}

export type ChooseContext = Context<'file' | 'signature' | 'update' | 'yes'>

/**
 * The definition that a change is made with: that of --file, which is sent into the slot update; otherwise the one in that slot, where
 * only values are set without it; otherwise the present one. Asks before a definition that waits in the slot is replaced.
 * @param hasValues whether values are set
 * @throws Failure
 */
export async function chooseDefinition(
  context: ChooseContext,
  present: Present,
  hasValues: boolean,
): Promise<Chosen> {
  const { client, line } = context
  const { file, update, signature } = line.options
  const { archiveUploadPath: presentPath = '' } = present.document.spec ?? {}
  if (file !== undefined && update !== undefined)
    throw new Failure('usage', '--file puts its definition into the slot update; leave out --update')
  if (file === undefined && signature !== undefined)
    throw new Failure('usage', '--signature is that of --file; add --file')
  if (file !== undefined) return uploaded(context, present, file)
  const slot = await readSlot(client)
  const isWaiting = slot.archiveUploadPath !== '' && slot.archiveUploadPath !== presentPath
  if (update !== undefined && slot.archiveUploadPath === '')
    throw new Failure('failed', 'the slot update of the host is empty; give a definition: --file DEFINITION')
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

async function uploaded(context: ChooseContext, present: Present, path: string): Promise<Chosen> {
  const { client, line, output, terminal } = context
  const file = await readDefinitionFile(path)
  const { mode } = await client.get<Pick<ServiceStatus, 'mode'>>(statusPath, ['mode'])
  if (mode === 'connected')
    throw new Failure('failed', 'the platform changes the cluster of this host; nothing was uploaded')
  const slot = await readSlot(client)
  if (slot.sha256 === file.sha256)
    return ofSlot(slot, ['The definition was in the slot update of the host already.'])
  // The cluster has a copy of its own of the definition that it was made with.
  const isKeptElsewhere = slot.archiveUploadPath === present.document.spec?.archiveUploadPath
  const isReplaced = slot.archiveUploadPath !== '' && !isKeptElsewhere
  if (isReplaced && line.options.yes === undefined)
    confirm(terminal, {
      what: wrapLines(
        `The definition ${titleOf(slot)} waits in the slot update of the host. The one that is sent takes its place, and is not applied yet.`,
        output.paper.columns,
      ),
      ask: 'Replace it?',
      done: 'replaced',
    })
  const { uploadPath, message } = await uploadDefinition(context, file, line.options.signature)
  output.note(
    `Uploaded: ${oneLine(message)}${isReplaced ? `, in the place of ${titleOf(slot)}` : ''}. It stays there until another one comes, or: edgehostctl api delete ${archivePath}`,
  )
  return {
    path: uploadPath,
    hints: [],
    profiles: async () => {
      const now = await readSlot(client)
      return now.archiveUploadPath === uploadPath ? profilesOf(now) : undefined
    },
  }
}

const ofSlot = (slot: ClusterConfigArchiveDetails, hints: readonly string[]): Chosen => ({
  ...{ path: slot.archiveUploadPath, hints },
  profiles: async () => profilesOf(slot),
})

const readSlot = (client: Context['client']) =>
  client.get<ClusterConfigArchiveDetails>(`${archivePath}/details`, [
    'archiveUploadPath',
    'clusterProfileDetails',
  ])

const profilesOf = ({ clusterProfileDetails }: ClusterConfigArchiveDetails): readonly KnownProfile[] =>
  clusterProfileDetails.map(({ profileUid: uid, profileName: name, variables }) => ({ uid, name, variables }))

/** Those of what runs; what waits may have others. */
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

/** A definition in a slot, for people. */
function titleOf({ fileName = '', uploadedAt }: ClusterConfigArchiveDetails): string {
  const when = uploadedAt === undefined ? '' : ` of ${moment(uploadedAt)}`
  return `${oneLine(fileName)}${when}`
}
