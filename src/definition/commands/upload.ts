import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { refusalOf, keepSession, type Context } from '../../ctl/client.ts'
import { readDetails } from '../../ctl/cluster.ts'
import { confirm } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import type { KnownProfile } from '../../ctl/given-values.ts'
import { moment, oneLine, renderFacts, wrapLines } from '../../ctl/layout.ts'
import { createMeter } from '../../ctl/output.ts'
import { parseBody, readReply } from '../../ctl/reply.ts'
import { fileForm, readBody } from '../../ctl/request-body.ts'
import { systemReason } from '../../errors/system-reason.ts'
import { printable } from '../../base/printable.ts'
import type { ServiceStatus } from '../../service/schemas.ts'
import type { ClusterConfigArchiveDetails, UploadResponse } from '../schemas.ts'
import type { ShownSlot } from '../slots/slot-names.ts'

const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
const statusPath = '/v1/edge-mgmt/edgehosts/current/status'
const readBytes = 262_144
// The largest archive is examined on a slow disk.
const examineMs = 1_800_000

const slotPath = (slot: ShownSlot) => `/v1/edge-mgmt/clusters/archive/${slot}`

/** The definition in a slot; of an empty one the `archiveUploadPath` is empty. @throws Failure */
export const readSlot = (client: Context['client'], slot: ShownSlot): Promise<ClusterConfigArchiveDetails> =>
  client.get<ClusterConfigArchiveDetails>(`${slotPath(slot)}/details`, [
    'archiveUploadPath',
    'clusterProfileDetails',
  ])

/** A definition in a slot, for people. */
export function titleOf({ fileName = '', uploadedAt }: ClusterConfigArchiveDetails): string {
  const when = uploadedAt === undefined ? '' : ` of ${moment(uploadedAt)}`
  return `${oneLine(fileName)}${when}`
}

/** A definition on the host, which a cluster is made or changed with. */
export interface Chosen {
  /** `archiveUploadPath`. */
  readonly path: string
  /** Its profiles, for values; undefined where the host does not give them. */
  profiles(): Promise<readonly KnownProfile[] | undefined>
  /** Uploads and omissions; lines for people. */
  readonly hints: readonly string[]
}

/** The definition in a slot, which is not empty. */
export const ofSlot = (slot: ClusterConfigArchiveDetails, hints: readonly string[]): Chosen => ({
  path: slot.archiveUploadPath,
  hints,
  profiles: async () => profilesOf(slot),
})

export const profilesOf = ({ clusterProfileDetails }: ClusterConfigArchiveDetails): readonly KnownProfile[] =>
  clusterProfileDetails.map(({ profileUid: uid, profileName: name, variables }) => ({ uid, name, variables }))

/** A definition on this machine. */
export interface DefinitionFile {
  readonly path: string
  readonly sizeBytes: number
  /** Hex. */
  readonly sha256: string
}

/**
 * @param name of the option or argument that names the file, for messages
 * @throws Failure usage where it is no readable file
 */
export async function readDefinitionFile(path: string, name: string): Promise<DefinitionFile> {
  const refuse = (why: string, cause?: unknown) =>
    new Failure('usage', `${name}: ${printable(path)} ${why}`, { cause })
  try {
    const info = await stat(path)
    if (!info.isFile()) throw refuse('is not a file; edgehostctl definition build makes one')
    const hash = createHash('sha256')
    let sizeBytes = 0
    for await (const chunk of createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      sizeBytes += chunk.length
    }
    return { path, sizeBytes, sha256: hash.digest('hex') }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw refuse(`cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, error)
  }
}

type Sending = Pick<Context, 'client' | 'output' | 'target'>

/**
 * Sends a definition, which gets into the slot overridden, or update of a host with a cluster.
 * @param signature file with its detached signature
 * @throws Failure; the slot is then as it was
 */
async function sendDefinition(
  { client, output, target }: Sending,
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
    if (reply.status !== 201) throw refusalOf(target, reply)
    return parseBody<UploadResponse>(reply, ['uploadPath', 'message'])
  } finally {
    meter.end()
    letSessionGo()
  }
}

const readMode = async (client: Context['client']): Promise<ServiceStatus['mode']> =>
  (await client.get<Pick<ServiceStatus, 'mode'>>(statusPath, ['mode'])).mode

interface Place {
  readonly file: DefinitionFile
  /** The slot that the host puts it into. */
  readonly slot: 'update' | 'overridden'
  /** `archiveUploadPath` of a definition that may be replaced without a question, since a copy of it is kept elsewhere. */
  readonly keptElsewhere?: string | undefined
}

/**
 * Puts a definition of this machine into a slot of the host, for what is done with it there, unless it is in that slot. Asks before one that
 * waits there is replaced.
 * @throws Failure, also where the platform manages the host; the slot is then as it was
 */
export async function placeDefinition(
  context: Context<'signature' | 'yes'>,
  { file, slot, keptElsewhere }: Place,
): Promise<Chosen> {
  const { client, line, output, terminal } = context
  if ((await readMode(client)) === 'connected')
    throw new Failure(
      'failed',
      'the platform makes and changes the cluster of this host; nothing was uploaded',
    )
  const present = await readSlot(client, slot)
  if (present.sha256 === file.sha256)
    return ofSlot(present, [`The definition was in the slot ${slot} of the host already.`])
  const isReplaced = present.archiveUploadPath !== '' && present.archiveUploadPath !== keptElsewhere
  if (isReplaced && line.options.yes === undefined)
    confirm(terminal, {
      what: wrapLines(
        `The definition ${titleOf(present)} waits in the slot ${slot} of the host. The one that is sent takes its place, and is not applied yet.`,
        output.paper.columns,
      ),
      ask: 'Replace it?',
      done: 'replaced',
    })
  const sent = await sendDefinition(context, file, line.options.signature)
  const orRemoved = slot === 'update' ? `, or: edgehostctl api delete ${slotPath(slot)}` : ''
  output.note(
    `Uploaded: ${oneLine(sent.message)}${isReplaced ? `, in the place of ${titleOf(present)}` : ''}. It stays there until another one comes${orRemoved}`,
  )
  return {
    path: sent.uploadPath,
    hints: [],
    profiles: async () => {
      const now = await readSlot(client, slot)
      return now.archiveUploadPath === sent.uploadPath ? profilesOf(now) : undefined
    },
  }
}

/** `edgehostctl definition upload`. It is what is asked for, so a definition in the slot is replaced without a question. */
export async function uploadToHost(context: Context<'signature'>): Promise<undefined> {
  const { client, line, output } = context
  const file = await readDefinitionFile(line.arguments[0] ?? '', 'FILE')
  const isManaged = (await readMode(client)) === 'connected'
  const slot = (await readDetails(context)) === undefined ? 'overridden' : 'update'
  const present = await readSlot(client, slot)
  const { sha256, archiveUploadPath, uid } = present
  const isThere = sha256 === file.sha256
  const reply: UploadResponse = isThere
    ? {
        message: `the definition was in the slot ${slot} of the host already`,
        uploadPath: archiveUploadPath,
        ...(uid === undefined ? {} : { uid }),
      }
    : await sendDefinition(context, file, line.options.signature)
  const next =
    slot === 'update' ? 'edgehostctl cluster diff' : 'edgehostctl cluster create --name NAME --dry-run'
  await output.show(reply, (paper) =>
    renderFacts(
      [
        { label: 'Definition', lines: [reply.message] },
        ...(isThere || archiveUploadPath === '' ? [] : [{ label: 'Replaced', lines: [titleOf(present)] }]),
        { label: 'Path', lines: [reply.uploadPath] },
        isManaged
          ? { label: 'Note', lines: ['the platform makes and changes the cluster of this host'] }
          : { label: 'Next', lines: [next] },
      ],
      paper,
    ),
  )
  return undefined
}
