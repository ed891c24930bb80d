import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Path of a socket on which every request gets this reply. */
export async function listen(answer: RequestListener): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-local-'))
  const path = join(folder, 'daemon.sock')
  const server = createServer(answer)
  await new Promise<void>((resolve) => void server.listen(path, resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true })
  })
  return path
}
