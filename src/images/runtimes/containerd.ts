import { createSlices } from '../../base/slices.ts'
import {
  createDescriptions,
  type Wanted,
  describeImage,
  documentBytes,
  createListBounds,
  budgetMs,
  listBytes,
  type Runtime,
  type SeenImage,
} from './describe.ts'
import { absent, AnswerTooLarge, bytesOf, readFields, textOf, writeNumber, writeText } from './wire.ts'
import { connectGrpc, GrpcStatus, grpcNotFound, type GrpcConnection } from './grpc.ts'

// Paths and numbers of the fields come from containerd's API, which is stable since 1.0.
// Source: https://github.com/containerd/containerd/tree/main/api/services, namespaces.proto, images.proto and content.proto
const services = '/containerd.services'
const nothing = Buffer.alloc(0)

/** A name in containerd, and its image. */
interface NamedImage {
  readonly name: string
  readonly digest: string
  /** Changes when more of the image is pulled. */
  readonly updatedAt: string
}

export interface ContainerdOptions {
  readonly socket: string
  readonly unit: string
}

/** The images of a containerd, in all its namespaces. */
export function createContainerd({ socket, unit }: ContainerdOptions): Runtime {
  const descriptions = createDescriptions()

  async function read(signal: AbortSignal): Promise<SeenImage[]> {
    const until = performance.now() + budgetMs
    const connection = await connectGrpc(socket, signal)
    try {
      const found: { namespace: string; digest: string; names: string[]; key: string }[] = []
      const wanted: Wanted[] = []
      const bounds = createListBounds()
      const rest = createSlices()
      let bytes = 0
      for (const namespace of await listNamespaces(connection)) {
        const listed = await listImages(connection, namespace, listBytes - bytes, bounds)
        bytes += listed.bytes
        for (const [digest, images] of listed.images) {
          const key = JSON.stringify([
            namespace,
            digest,
            images
              .map(({ updatedAt }) => updatedAt)
              .sort()
              .at(-1),
          ])
          found.push({ namespace, digest, names: images.map(({ name }) => name), key })
          const describe = () => describeImage(digest, (named) => readBlob(connection, namespace, named))
          wanted.push({ key, describe })
          await rest()
        }
      }
      await descriptions.update(wanted, until, signal)
      return found.map(({ namespace, digest, names, key }) => ({
        namespace,
        digests: [digest],
        names,
        description: descriptions.of(key),
      }))
    } finally {
      connection.close()
    }
  }

  return {
    name: 'containerd',
    endpoint: socket,
    unit,
    read: (signal) => read(signal).catch(absent),
  }
}

const mostNamespaces = 1_000

async function listNamespaces(connection: GrpcConnection): Promise<string[]> {
  const [reply = nothing] = await connection.call({
    path: `${services}.namespaces.v1.Namespaces/List`,
    message: nothing,
    metadata: {},
    maximumBytes: documentBytes,
  })
  const names: string[] = []
  for (const namespace of readFields(reply))
    for (const field of readFields(bytesOf(namespace))) {
      if (field.number !== 1) continue
      if (names.length === mostNamespaces) throw new AnswerTooLarge(`${mostNamespaces} namespaces`)
      names.push(textOf(field))
    }
  return names
}

/** The images of a namespace by their digests. */
async function listImages(
  connection: GrpcConnection,
  namespace: string,
  maximumBytes: number,
  bounds: ReturnType<typeof createListBounds>,
) {
  const [reply = nothing] = await connection.call({
    path: `${services}.images.v1.Images/List`,
    message: nothing,
    maximumBytes,
    metadata: { 'containerd-namespace': namespace },
  })
  const images = new Map<string, NamedImage[]>()
  const rest = createSlices()
  for (const field of readFields(reply)) {
    await rest()
    if (field.number !== 1) continue
    const message = bytesOf(field)
    if (message.length > documentBytes) throw new AnswerTooLarge(documentBytes)
    const image = readImage(message)
    bounds([image.name, image.digest])
    const same = images.get(image.digest)
    if (same) same.push(image)
    else images.set(image.digest, [image])
  }
  return { images, bytes: reply.length }
}

function readImage(message: Buffer): NamedImage {
  let [name, digest, updatedAt] = ['', '', '']
  for (const field of readFields(message)) {
    if (field.number === 1) name = textOf(field)
    else if (field.number === 3) digest = digestOfTarget(bytesOf(field))
    else if (field.number === 8) updatedAt = bytesOf(field).toString('hex')
  }
  return { name, digest, updatedAt }
}

function digestOfTarget(descriptor: Buffer): string {
  for (const field of readFields(descriptor)) if (field.number === 2) return textOf(field)
  return ''
}

/** @returns undefined if the namespace does not have it, or it is too large for a document */
async function readBlob(
  connection: GrpcConnection,
  namespace: string,
  digest: string,
): Promise<Buffer | undefined> {
  try {
    const replies = await connection.call({
      path: `${services}.content.v1.Content/Read`,
      message: Buffer.concat([writeText(1, digest), writeNumber(3, documentBytes + 1)]),
      metadata: { 'containerd-namespace': namespace },
      maximumBytes: 2 * documentBytes,
    })
    return Buffer.concat(
      replies.flatMap((reply) => [...readFields(reply)].filter(({ number }) => number === 2).map(bytesOf)),
    )
  } catch (error) {
    if (error instanceof GrpcStatus && error.code === grpcNotFound) return undefined
    throw error
  }
}
