import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, expect, it } from 'vitest'
import { fileForm } from '../../../src/ctl/request-body.ts'

const folder = mkdtempSync(join(tmpdir(), 'edgehostctl-form-'))
afterAll(() => rmSync(folder, { recursive: true }))

it('a file is the last part of its form, which has the announced size', async () => {
  const content = 'x'.repeat(600_000)
  const { form, sent } = formOfFile(content, content.length)
  const bytes = await buffer(form.body.open())
  expect(bytes).toHaveLength(form.body.sizeBytes)
  const boundary = form.type.slice('multipart/form-data; boundary='.length)
  const parts = bytes.toString().split(`--${boundary}`)
  expect(parts).toEqual([
    '',
    '\r\nContent-Disposition: form-data; name="signature"; filename="s"\r\n\r\nsigned\r\n',
    `\r\nContent-Disposition: form-data; name="uploadFile"; filename="f.tgz"\r\n\r\n${content}\r\n`,
    '--\r\n',
  ])
  expect(sent.reduce((sum, each) => sum + each, 0)).toBe(content.length)
})

it.each([1, -1])('a file that has %i bytes more when it is sent is refused', async (more) => {
  const { form } = formOfFile('x'.repeat(100 + more), 100)
  await expect(buffer(form.body.open())).rejects.toThrow('was changed while it was sent')
})

function formOfFile(content: string, sizeBytes: number) {
  const path = join(folder, 'file')
  writeFileSync(path, content)
  const sent: number[] = []
  const parts = [{ name: 'signature', fileName: 's', content: Buffer.from('signed') }]
  return {
    sent,
    form: fileForm({ parts, path, fileName: 'f.tgz', sizeBytes, onSent: (bytes) => sent.push(bytes) }),
  }
}
