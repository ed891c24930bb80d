import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import {
  imageLayout,
  layoutTar,
  noReserve,
  contentClient,
  uploadContentPath,
} from '../../support/content-uploads.ts'
import { contentProgram } from '../../support/programs.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { waitFor } from '../../support/wait-for.ts'
import { noise } from '../../support/random.ts'

// curl sends 64 KiB and pauses, here for a second, on a busy machine for longer.
const limitMs = 5_000
let folder: string
let wire: WireEdge
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-slow-upload-'))
  const timeouts = { handshakeMs: 10_000, headersMs: limitMs, idleMs: limitMs, stalledMs: limitMs }
  wire = await createWireEdge(
    { contentProgram: contentProgram(), content: noReserve },
    {
      timeouts,
      body: { limitBytes: 1_048_576, minimumBytesPerSecond: 1_024, windowSeconds: limitMs / 1_000 },
    },
  )
})
afterEach(async () => {
  await wire.stop()
  rmSync(folder, { recursive: true, force: true })
})

const isThere = spawnSync('curl', ['--version']).error === undefined
it.skipIf(!isThere)(
  'an upload by a slow curl may last longer than every time limit of the connection, and than its token',
  async () => {
    const { edge, port, cert } = wire
    const { access } = await edge.login('alice')
    const [file, certificate] = [join(folder, 'bundle.tar'), join(folder, 'certificate.pem')]
    writeFileSync(file, layoutTar(imageLayout([noise(300_000, 1).toString('hex')])))
    writeFileSync(certificate, cert)
    const startedAt = performance.now()
    const sent = promisify(execFile)('curl', [
      ...['--silent', '--show-error', '--cacert', certificate, '--resolve', `localhost:${port}:127.0.0.1`],
      ...['--limit-rate', '60k', '--form', `uploadFile=@${file}`, '--header', `Authorization: ${access}`],
      ...['--write-out', '\n%{http_code}', `https://localhost:${port}${uploadContentPath}`],
    ])
    const client = contentClient(edge, access)
    await waitFor(async () => {
      const { items } = (await client.list()).json<{ items: { receivedBytes: number }[] }>()
      expect(items[0]?.receivedBytes).toBeGreaterThan(0)
    }, 15_000)
    // As if it had taken two hours already.
    const hours = vi.spyOn(edge.clock, 'now').mockReturnValue(Date.now() + 2 * 3_600_000)
    expect((await client.list()).statusCode).toBe(401)
    const { stdout } = await sent
    hours.mockRestore()
    expect(stdout.split('\n').at(-1)).toBe('201')
    expect(performance.now() - startedAt).toBeGreaterThan(limitMs)
  },
)
