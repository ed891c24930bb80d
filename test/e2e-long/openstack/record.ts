import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import type { Reply } from '../../e2e/host/http.ts'

const folder = join(import.meta.dirname, '../../platform/clouds/recorded')

/** What is kept of the headers of a reply. */
const kept = ['content-type', 'x-subject-token']

/**
 * Keeps a reply of the real cloud for `make test`, which is held to it; only where `RECORD=1` asks for it.
 * @param secrets what stands in it and in no file
 */
export async function record(name: string, reply: Reply, secrets: readonly string[] = []): Promise<void> {
  if (process.env.RECORD !== '1') return
  const headers = Object.fromEntries(
    Object.entries(reply.headers).flatMap(([key, [value]]) => (kept.includes(key) ? [[key, value]] : [])),
  )
  const text = secrets.reduce(
    (rest, secret) => rest.replaceAll(secret, 'SECRET'),
    JSON.stringify({ status: reply.status, headers, body: reply.json as unknown }),
  )
  await mkdir(folder, { recursive: true })
  const file = join(folder, `${name}.json`)
  await writeFile(file, await format(text, { ...(await resolveConfig(file)), parser: 'json' }))
}
