import type { FileHandle } from 'node:fs/promises'
import type { FastifyReply } from 'fastify'
import type { FileSender } from '../../api/send-file.ts'
import type { EdgeHostDevice } from '../schemas/edge-hosts.ts'

/**
 * Sends a host with the packs of its cluster, which go out as the file has them: they may be larger than other replies.
 * @param file of `Downloads.openResolved`; it stays open
 */
export async function sendResolved(
  sender: FileSender,
  reply: FastifyReply,
  { spec, ...rest }: EdgeHostDevice,
  file: FileHandle,
): Promise<void> {
  const before = Buffer.from('{"spec":{"clusterProfileTemplates":')
  const after = Buffer.from(`,${JSON.stringify(spec).slice(1)},${JSON.stringify(rest).slice(1)}`)
  const { size: sizeBytes } = await file.stat()
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': before.length + sizeBytes + after.length,
  }
  const begin = () => reply.code(200).headers(headers).hijack()
  await sender.send({ file, start: 0, sizeBytes, before, after, begin })
}
