import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { open, readdir, readlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createStoredReplies, textReply, type StoredReplies } from '../../../src/definition/slots/slots.ts'
import { waitFor } from '../../support/wait-for.ts'
import { noise } from '../../support/random.ts'

let home: string
let replies: StoredReplies
let opened: number
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  home = mkdtempSync(join(tmpdir(), 'stored-reply-'))
  replies = createStoredReplies()
  opened = 0
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(home, { recursive: true })
})

const reply = (name: string) =>
  replies.reply({
    ...{ name, before: '{"é":', after: '}' },
    open: () => {
      opened += 1
      return open(join(home, name)).catch(() => undefined)
    },
  })
const whole = async (name: string) => {
  const found = await reply(name)
  const bytes = found && (await buffer(found.content))
  expect(bytes?.length).toBe(found?.sizeBytes)
  return bytes
}
const filesOpen = async () => {
  const links = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))
  return (await Promise.all(links)).filter((link) => link.startsWith(home)).length
}
const around = (content: Buffer) => Buffer.concat([Buffer.from('{"é":'), content, Buffer.from('}')])

it.each([0, 1, 131_072, 400_000, 16_777_216, 16_777_217, 20_000_000])(
  'a file of %i bytes is sent completely between the two texts, again and again',
  async (size) => {
    const content = noise(size)
    writeFileSync(join(home, 'a'), content)
    for (let round = 0; round < 2; round += 1) expect((await whole('a'))?.equals(around(content))).toBe(true)
    expect(await filesOpen()).toBe(0)
    // Larger files are never in memory as a whole.
    expect(opened).toBe(size > 16_777_216 ? 2 : 1)
  },
)

it('only the last file is kept, for a minute after its last use', async () => {
  for (const name of ['a', 'b']) writeFileSync(join(home, name), name)
  for (const name of ['a', 'a', 'b', 'a']) expect(String(await whole(name))).toBe(`{"é":${name}}`)
  expect(opened).toBe(3)
  vi.advanceTimersByTime(59_000)
  await whole('a')
  vi.advanceTimersByTime(59_000)
  await whole('a')
  expect(opened).toBe(3)
  vi.advanceTimersByTime(60_000)
  await whole('a')
  expect(opened).toBe(4)
})

it('a file that was removed gives no reply', async () => {
  expect(await reply('a')).toBeUndefined()
})

it('a large file is closed if its reply is abandoned or never begun', async () => {
  writeFileSync(join(home, 'a'), Buffer.alloc(20_000_000))
  const untouched = await reply('a')
  untouched?.content.destroy()
  const begun = await reply('a')
  for await (const piece of begun?.content ?? []) if ((piece as Buffer).length > 100) break
  await waitFor(async () => expect(await filesOpen()).toBe(0))
})

it('a text can be a reply', async () => {
  const { sizeBytes, content } = textReply('{"é":1}')
  expect([sizeBytes, String(await buffer(content))]).toEqual([8, '{"é":1}'])
})
