import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { decompress } from '../../../archive/compression.ts'
import { chartLimits } from '../../../archive/chart-archive.ts'
import { readTar } from '../../../archive/tar-reader.ts'

/** Bytes that the data of a Secret may have: `MaxSecretSize` of Kubernetes. */
export const secretBytes = 2 ** 20
// Text may become five times as large: twice by base64, of which gzip finds less that repeats.
const surelySmallBytes = secretBytes / 5

/**
 * How large the Secret is in which helm keeps a release: its chart without the charts in it, the values and what was rendered, as
 * JSON with base64, by gzip and in base64 again (`encodeRelease` in pkg/storage/driver/util.go of helm).
 * @param file the archive of the chart @param texts what was rendered, and the values
 * @returns bytes, without some that depend on helm, such as its own defaults; 0 where it is surely small
 */
export async function releaseBytes(file: string, texts: readonly string[]): Promise<number> {
  const textBytes = texts.reduce((sum, text) => sum + text.length, 0)
  if ((await stat(file)).size + textBytes <= surelySmallBytes) return 0
  let bytes = 0
  await pipeline(contentOf(file, texts), createGzip({ level: 9 }), async (zipped: AsyncIterable<Buffer>) => {
    for await (const chunk of zipped) bytes += chunk.length
  })
  return Math.ceil(bytes / 3) * 4
}

async function* contentOf(file: string, texts: readonly string[]): AsyncGenerator<string> {
  const archive = decompress(createReadStream(file), chartLimits)
  for await (const { name, kind, content } of readTar(archive, chartLimits)) {
    const path = name.slice(name.indexOf('/') + 1)
    if (kind !== 'file' || /^(charts\/|Chart\.|values\.yaml$)/.test(path)) continue
    const parts: Buffer[] = []
    for await (const part of content) parts.push(part)
    yield JSON.stringify({ name: path, data: Buffer.concat(parts).toString('base64') })
  }
  for (const text of texts) yield JSON.stringify(text)
}
