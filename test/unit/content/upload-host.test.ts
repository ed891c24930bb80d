import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { createUploadHost, Interrupted } from '../../../src/content/commands/upload/host.ts'
import type { Client } from '../../../src/ctl/client.ts'

const uid = '3f2c5e2e-93a4-4c43-8f0e-000000000001'
const blob = {
  ...{ digest: `sha256:${'a'.repeat(64)}`, sizeBytes: 3, heldBytes: 0 },
  ...{ isManifest: false, isOptional: false },
}

/** A client whose host gives every request this reply. */
function answering(statusCode: number, body: object, headers: Record<string, string> = {}): Client {
  const open = async () =>
    Object.assign(Readable.from([Buffer.from(JSON.stringify(body))]), {
      statusCode,
      headers,
      complete: true,
    }) as unknown as IncomingMessage
  return { open } as unknown as Client
}

it('an upload that another edgehostctl publishes at this moment is waited for', async () => {
  const busy = { code: 'UploadBusy', message: 'the upload is being published' }
  const host = createUploadHost(answering(409, busy, { 'retry-after': '5' }))
  const body = { sizeBytes: 3, open: () => Readable.from([Buffer.from('abc')]) }
  const refusals = await Promise.allSettled([host.send(uid, blob, body), host.publish(uid)])
  for (const refusal of refusals) {
    const { reason } = refusal as PromiseRejectedResult
    expect(reason).toBeInstanceOf(Interrupted)
    expect(reason).toMatchObject({ retryAfterSec: 5 })
  }
})

it('a blob of which the host has all bytes is not sent: another request is completing it', async () => {
  const host = createUploadHost(answering(400, { code: 'BadRequest', message: 'no range' }))
  const body = { sizeBytes: 0, open: () => Readable.from([]) }
  expect(await host.send(uid, { ...blob, heldBytes: 3 }, body)).toBe('wrong')
})
