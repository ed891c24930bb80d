import type { Unpacked, UnpackOrder } from './protocol.ts'

/** Unpacks an OCI image layout into the folder of an upload. */
export async function unpack({ upload }: UnpackOrder, archive: AsyncIterable<Buffer>): Promise<Unpacked> {
  let sizeBytes = 0
  for await (const chunk of archive) sizeBytes += chunk.length
  throw new Error(`${upload}: no bundle of ${sizeBytes} bytes is unpacked yet`)
}
