import { describeForm } from '../../api/json-form.ts'
import { indexTar, type IndexedMember } from '../../archive/tar-index.ts'
import { withDefaults } from '../../archive/limits.ts'
import { largestDescription, deliveredCluster } from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { openEncrypted, readEncrypted, type EncryptedFile } from '../../secrets/encrypted-file.ts'

/** Desired cluster of the platform, as it was downloaded. */
export type Delivery = {
  readonly number: number
  readonly tenantUid: string
  readonly uid: string
  readonly name: string
} & (
  | { readonly isDeleted: true }
  | {
      readonly isDeleted: false
      /** Unchecked: the room of the cluster knows its form. */
      readonly configuration: unknown
      readonly definition: {
        readonly sha256: string
        readonly sizeBytes: number
        readonly fileName: string
        readonly open: () => AsyncIterable<Buffer>
      }
    }
)

/** A whole download is no delivery; the message completes "what was downloaded". */
export class DeliveryRefused extends Error {
  override readonly name = 'DeliveryRefused'
}

/** Bytes of headers and padding, with room to spare. */
export const tarOverhead = 65_536

const definitionName = /^definition\.[a-z0-9.]{1,16}$/
const uidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const tenantForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const nameForm = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const sumForm = /^[0-9a-f]{64}$/

/**
 * Reads a delivery: a tar without compression with `cluster.json`, and where the cluster is not deleted the archive of the definition after it.
 * @param limitBytes of the definition
 * @throws DeliveryRefused; the system's error where the file cannot be read
 */
export async function readDelivery(file: EncryptedFile, limitBytes: number): Promise<Delivery> {
  const handle = await openEncrypted(file)
  try {
    const limits = withDefaults({ members: 2, memberBytes: Math.max(limitBytes, largestDescription) })
    const members = [...(await indexTar(handle, limits).catch(refuseArchive))]
    const [head, definition, ...more] = members
    if (!head || !isFile(head, (name) => name === deliveredCluster) || more.length > 0)
      throw new DeliveryRefused(`does not begin with ${deliveredCluster}, or has other members`)
    const [, { start, sizeBytes }] = head
    if (sizeBytes > largestDescription)
      throw new DeliveryRefused(
        `has a ${deliveredCluster} of ${sizeBytes} bytes; ${largestDescription} are allowed`,
      )
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(sizeBytes), 0, sizeBytes, start)
    if (bytesRead < sizeBytes) throw new DeliveryRefused('ends too early')
    const { said, isDeleted, configuration, definitionSha256 } = parseHead(buffer)
    if (isDeleted) {
      if (definition) throw new DeliveryRefused('deletes the cluster, and has a definition')
      return { ...said, isDeleted }
    }
    if (!definition || !isFile(definition, (name) => definitionName.test(name)))
      throw new DeliveryRefused('has no definition')
    const [fileName, archive] = definition
    return {
      ...said,
      isDeleted,
      configuration,
      definition: {
        sha256: definitionSha256,
        sizeBytes: archive.sizeBytes,
        fileName,
        open: () => readEncrypted(file, { start: archive.start, end: archive.start + archive.sizeBytes - 1 }),
      },
    }
  } finally {
    await handle.close()
  }
}

const isFile = ([name, { kind, sizeBytes }]: [string, IndexedMember], isName: (name: string) => boolean) =>
  kind === 'file' && sizeBytes > 0 && isName(name)

function parseHead(bytes: Buffer) {
  const parsed = parseJson(bytes)
  if (typeof parsed !== 'object' || parsed === null)
    throw new DeliveryRefused(`has no JSON as ${deliveredCluster}`)
  const { number, cluster, tenantUid, isDeleted, definitionSha256, configuration } = parsed as Readonly<
    Partial<Record<string, unknown>>
  >
  const { uid, name } = { ...(cluster as Readonly<Record<'uid' | 'name', unknown>> | null | undefined) }
  const text = (value: unknown, form: RegExp, what: string): string => {
    if (typeof value === 'string' && form.test(value)) return value
    throw new DeliveryRefused(`has no ${what} in ${deliveredCluster}`)
  }
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 1)
    throw new DeliveryRefused(`has no number in ${deliveredCluster}`)
  if (typeof isDeleted !== 'boolean') throw new DeliveryRefused(`has no isDeleted in ${deliveredCluster}`)
  return {
    said: {
      number,
      uid: text(uid, uidForm, 'uid of a cluster'),
      // The name becomes a part of messages before anything else reads it.
      name: text(name, nameForm, 'name of a cluster'),
      tenantUid: text(tenantUid, tenantForm, 'tenant'),
    },
    isDeleted,
    configuration,
    definitionSha256: isDeleted ? '' : text(definitionSha256, sumForm, 'sum of the definition'),
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    const text = bytes.toString()
    // A parser needs more memory than this host has for megabytes of brackets.
    return describeForm(text) === undefined ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

function refuseArchive(error: unknown): never {
  if (error instanceof AppError) throw new DeliveryRefused(`is no archive of a platform: ${error.message}`)
  throw error
}
