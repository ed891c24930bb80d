import { createVerify } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { shellWord } from '../../../base/printable.ts'
import { bundleNameOf, isPacked, packedStartBytes } from '../../../archive/compression.ts'
import { type Context, keepSession } from '../../../ctl/client.ts'
import { Failure } from '../../../ctl/exit-codes.ts'
import { renderFacts, amount } from '../../../ctl/layout.ts'
import { AppError } from '../../../errors/app-error.ts'
import { systemReason } from '../../../errors/system-reason.ts'
import { readRegularFile } from '../../../system/regular-file.ts'
import { openCompressed, openFolder, type BundleSource, NotTar, openTar } from './sources.ts'
import { fileForm } from '../../../ctl/request-body.ts'
import { createUploadHost, Interrupted, type UploadHost } from './host.ts'
import { createMeter, type Meter } from '../../../ctl/output.ts'
import { sendBlobs, type Sent } from './send-blobs.ts'

const connections = 4
const signatureBytes = 16_384

/** `edgehostctl content upload`. */
export async function uploadContent({
  client,
  line,
  output,
  target,
}: Context<'signature' | 'name'>): Promise<undefined> {
  const [path = ''] = line.arguments
  const { signature: signatureFile, name } = line.options
  const meter = createMeter(process.stderr, output.note)
  const host = createUploadHost(client)
  const startedAt = performance.now()
  const isFolder = (await stat(path).catch(refuseFile(path))).isDirectory()
  const signature = signatureFile === undefined ? undefined : await readSignature(signatureFile)
  const source = isFolder ? await openFolder(path) : await openFile(path)
  process.once('SIGINT', () => {
    meter.end()
    output.note('Interrupted. What the host has is kept for days: the same command continues the upload.')
    process.exit(130)
  })
  const letSessionGo = target.kind === 'host' ? keepSession(client) : () => undefined
  try {
    const key = signature && (await patiently(() => host.signingKey()))
    const isOfIndex = !key || !signature || verifies(key, source.index, signature)
    if (!isOfIndex && isFolder)
      throw new Failure(
        'failed',
        `the signature in ${signatureFile ?? ''} is not one of ${path}/index.json by the key of the host; sign that file: openssl dgst -sha256 -sign KEY -out FILE.sig ${shellWord(`${path}/index.json`)}`,
      )
    const sent = isOfIndex
      ? await sendBlobs({
          host,
          source,
          name: name ?? source.name,
          signature: key ? signature : undefined,
          meter,
          connections,
        })
      : await sendWhole({ host, path, name: name ?? basename(path), signature, meter, note: output.note })
    meter.end()
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    const reply = {
      uid: sent.uid,
      isNew: sent.isNew,
      sentBytes: meter.sentBytes(),
      seconds,
      message: sent.message,
    }
    await output.show(reply, (paper) =>
      renderFacts(
        [
          { label: 'Bundle', lines: [sent.uid] },
          { label: 'State', lines: [sent.message], mood: 'good' },
          { label: 'Sent', lines: [`${amount(meter.sentBytes())} in ${seconds} s`] },
        ],
        paper,
      ),
    )
  } catch (error) {
    meter.end()
    if (error instanceof AppError || error instanceof NotTar)
      throw new Failure('failed', `${path}: ${error.message}`, { cause: error })
    throw error
  } finally {
    letSessionGo()
    await source.close()
  }
  return undefined
}

async function openFile(path: string): Promise<BundleSource> {
  const handle = await open(path).catch(refuseFile(path))
  const name = bundleNameOf(basename(path))
  try {
    const { buffer } = await handle.read(Buffer.alloc(packedStartBytes), 0, packedStartBytes, 0)
    const isPlain = !isPacked(buffer)
    const source = isPlain ? await openTar(path, handle, name) : await openCompressed(path, name)
    if (source && isPlain) return source
    await handle.close()
    if (source) return source
  } catch (error) {
    await handle.close()
    if (error instanceof NotTar || error instanceof AppError)
      throw new Failure('usage', `${path} is not a bundle: ${error.message}`, { cause: error })
    throw error
  }
  throw new Failure(
    'usage',
    `${path} is not a bundle: it has no index.json; make one of a definition and its images: edgehostctl content build --definition ${shellWord(path)} --output FILE; of images in old archives: edgehostctl content build --image-archive ${shellWord(path)} --output FILE`,
  )
}

async function readSignature(path: string): Promise<Buffer> {
  const { bytes } = await readRegularFile(path, signatureBytes).catch(refuseFile(path))
  return bytes
}

const refuseFile =
  (path: string) =>
  (error: unknown): never => {
    throw new Failure('usage', `${path} cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, {
      cause: error,
    })
  }

/** Whether a signature, as bytes, hex or base64, is one of these bytes. */
function verifies(key: string, bytes: Buffer, signature: Buffer): boolean {
  const text = signature.toString('latin1').replaceAll(/\s/g, '')
  const forms = [signature, Buffer.from(text, 'hex'), Buffer.from(text, 'base64')]
  return forms.some((form) => form.length > 0 && createVerify('sha256').update(bytes).verify(key, form))
}

interface WholeOptions {
  readonly host: UploadHost
  readonly path: string
  readonly name: string
  readonly signature: Buffer | undefined
  readonly meter: Meter
  readonly note: (text: string) => void
}

/** Sends a file as one, for a signature that is of the file. */
async function sendWhole({ host, path, name, signature, meter, note }: WholeOptions): Promise<Sent> {
  note(
    'The signature is not one of index.json, so the file is sent as one: after an interruption this begins anew. To be able to continue, sign index.json.',
  )
  const { size: sizeBytes } = await stat(path)
  const parts = signature ? [{ name: 'signature', fileName: 'signature', content: signature }] : []
  const { type, body } = fileForm({ parts, path, fileName: name, sizeBytes, onSent: meter.sent })
  meter.begin(sizeBytes, 0)
  return host.sendFile(type, body).catch((error: unknown) => {
    throw error instanceof Interrupted ? error.failure : error
  })
}

async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error
      if (attempt >= 3) throw error.failure
      await sleep(Math.max(1, error.retryAfterSec) * 1_000)
    }
  }
}
