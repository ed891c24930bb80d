import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { notLoggedIn } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { fileForm } from '../../ctl/file-form.ts'
import { keepSession } from '../../ctl/keep-session.ts'
import { createMeter } from '../../ctl/meter.ts'
import { readBody } from '../../ctl/read-body.ts'
import { parseBody, readReply, toFailure } from '../../ctl/reply.ts'
import { systemReason } from '../../errors/system-reason.ts'
import { printable } from '../../base/printable.ts'
import type { UploadResponse } from '../../definition/schemas.ts'
import type { HostContext } from './change-host.ts'

const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
const readBytes = 262_144
// The largest archive is examined on a slow disk.
const examineMs = 1_800_000

/** A definition on this machine. */
export interface DefinitionFile {
  readonly path: string
  readonly sizeBytes: number
  /** Hex. */
  readonly sha256: string
}

/** @throws Failure usage for what is no file that can be read */
export async function readDefinitionFile(path: string): Promise<DefinitionFile> {
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
export async function uploadDefinition(
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
        ...{ method: 'POST', path: uploadPath, headers: { 'content-type': type }, timeoutMs: examineMs },
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
