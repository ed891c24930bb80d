import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { notLoggedIn, keepSession, type Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { fileForm, readBody } from '../../ctl/request-body.ts'
import { createMeter } from '../../ctl/output.ts'
import { parseBody, readReply, toFailure } from '../../ctl/reply.ts'
import { systemReason } from '../../errors/system-reason.ts'
import { printable } from '../../base/printable.ts'
import type { UploadResponse, ClusterConfigArchiveDetails } from '../../definition/schemas.ts'
import { type HostContext, shownOf, type Present } from './change-host.ts'
import { confirm } from '../../ctl/confirm.ts'
import { moment, oneLine, wrapLines } from '../../ctl/layout.ts'
import type { ServiceStatus } from '../../service/schemas.ts'
import type { ClusterCurrentApplications } from '../packs/schemas.ts'
import type { KnownProfile } from '../../ctl/given-values.ts'
import { clusterPath } from '../../ctl/cluster.ts'

const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
const readBytes = 262_144
// The largest archive is examined on a slow disk.
const examineMs = 1_800_000

/** A definition on this machine. */
interface DefinitionFile {
  readonly path: string
  readonly sizeBytes: number
  /** Hex. */
  readonly sha256: string
}

/** @throws Failure usage where it is no readable file */
async function readDefinitionFile(path: string): Promise<DefinitionFile> {
  try {
    const info = await stat(path)
    if (!info.isFile()) throw refuse(path, 'is not a file; edgehostctl definition build makes one')
    const hash = createHash('sha256')
    let sizeBytes = 0
    for await (const chunk of createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      sizeBytes += chunk.length
    }
    return { path, sizeBytes, sha256: hash.digest('hex') }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw refuse(path, `cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, error)
  }
}

/**
 * Sends a definition, which gets into the slot update of a host with a cluster.
 * @param signature file with its detached signature
 * @throws Failure; the slot is then as it was
 */
async function uploadDefinition(
  { client, output, target }: HostContext,
  { path, sizeBytes }: DefinitionFile,
  signature: string | undefined,
): Promise<UploadResponse> {
  const parts =
    signature === undefined
      ? []
      : [{ name: 'signature', fileName: 'signature', content: readBody(signature, '--signature') }]
  const meter = createMeter(process.stderr, output.note)
  const { type, body } = fileForm({ parts, path, fileName: basename(path), sizeBytes, onSent: meter.sent })
  meter.begin(sizeBytes, 0)
  const letSessionGo = target.kind === 'host' ? keepSession(client) : () => undefined
  try {
    const reply = await readReply(
      await client.open({
        method: 'POST',
        path: uploadPath,
        headers: { 'content-type': type },
        timeoutMs: examineMs,
        body,
      }),
    )
    if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
    if (reply.status !== 201) throw toFailure(reply)
    return parseBody<UploadResponse>(reply, ['uploadPath', 'message'])
  } finally {
    meter.end()
    letSessionGo()
  }
}

const refuse = (path: string, why: string, cause?: unknown) =>
  new Failure('usage', `--file: ${printable(path)} ${why}`, { cause })

const archivePath = '/v1/edge-mgmt/clusters/archive/update'
const statusPath = '/v1/edge-mgmt/edgehosts/current/status'

/** The definition that a change is made with. */
export interface Chosen {
  /** `archiveUploadPath`. */
  readonly path: string
  /** Its profiles, for values; undefined where the host does not give them. */
  profiles(): Promise<readonly KnownProfile[] | undefined>
  /** Uploads and omissions; lines for people. */
  readonly hints: readonly string[]
}

type ChooseContext = Context<'file' | 'signature' | 'update' | 'yes'>

/**
 * The definition that a change is made with: the file of --file, which is sent into the slot update; otherwise the one in that slot, where
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
  path: slot.archiveUploadPath,
  hints,
  profiles: async () => profilesOf(slot),
})

const readSlot = (client: Context['client']) =>
  client.get<ClusterConfigArchiveDetails>(`${archivePath}/details`, [
    'archiveUploadPath',
    'clusterProfileDetails',
  ])

const profilesOf = ({ clusterProfileDetails }: ClusterConfigArchiveDetails): readonly KnownProfile[] =>
  clusterProfileDetails.map(({ profileUid: uid, profileName: name, variables }) => ({ uid, name, variables }))

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

/** A definition in a slot, for people. */
function titleOf({ fileName = '', uploadedAt }: ClusterConfigArchiveDetails): string {
  const when = uploadedAt === undefined ? '' : ` of ${moment(uploadedAt)}`
  return `${oneLine(fileName)}${when}`
}
