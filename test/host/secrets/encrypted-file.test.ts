import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { encryptFrom, openEncrypted, readEncrypted } from '../../../src/secrets/encrypted-file.ts'
import { noise } from '../../support/random.ts'

const [key, bytes] = [noise(32), noise(100_003)]

it('a file that is encrypted in pieces, with new starts between them, is the same as at once', () => {
  const whole = encryptFrom(key, 0)(bytes)
  expect(whole.equals(bytes)).toBe(false)
  for (const cut of [1, 15, 16, 17, 4_096, 99_999]) {
    const start = encryptFrom(key, 0)
    const pieces = [
      start(bytes.subarray(0, Math.floor(cut / 2))),
      start(bytes.subarray(Math.floor(cut / 2), cut)),
      encryptFrom(key, cut)(bytes.subarray(cut)),
    ]
    expect(Buffer.concat(pieces).equals(whole), String(cut)).toBe(true)
  }
})

it('an encrypted file is read anywhere', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-encrypted-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = { path: join(folder, 'file'), key }
  writeFileSync(file.path, encryptFrom(key, 0)(bytes))
  const opened = await openEncrypted(file)
  onTestFinished(opened.close)
  expect((await opened.stat()).size).toBe(bytes.length)
  for (const at of [0, 1, 16, 50_007]) {
    const { buffer: found, bytesRead } = await opened.read(Buffer.alloc(40), 8, 32, at)
    expect([bytesRead, found.subarray(8)]).toEqual([32, bytes.subarray(at, at + 32)])
  }
  const late = await opened.read(Buffer.alloc(40), 0, 40, bytes.length - 3)
  expect([late.bytesRead, late.buffer.subarray(0, 3)]).toEqual([3, bytes.subarray(-3)])
  expect((await buffer(readEncrypted(file))).equals(bytes)).toBe(true)
  expect(await buffer(readEncrypted(file, { start: 21, end: 70_000 }))).toEqual(bytes.subarray(21, 70_001))
})
