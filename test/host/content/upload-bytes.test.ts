import { link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createUploadBytes } from '../../../src/content/bundles.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-uploads-'))
  for (const name of ['one', 'two'])
    for (const below of ['blobs', 'parts']) await mkdir(join(folder, name, below), { recursive: true })
})
afterEach(() => rm(folder, { recursive: true }))

const put = (path: string, bytes: number) => writeFile(join(folder, path), Buffer.alloc(bytes))

it('counts the files of all uploads, and no file that has another link', async () => {
  const read = createUploadBytes({ folder })
  expect(await read()).toBe(0)
  await put('one/upload.json', 1)
  await put('one/blobs/a', 10)
  await put('two/parts/b', 100)
  await put('stored', 1_000)
  await link(join(folder, 'stored'), join(folder, 'two/blobs/c'))
  expect(await read()).toBe(111)
  await put('two/parts/d', 10_000)
  expect(await Promise.all([read(), read()])).toEqual([10_111, 10_111])
})

it('uploads of many files are counted once a minute', async () => {
  let now = 0
  const read = createUploadBytes({ folder, monotonic: () => now })
  await Promise.all(Array.from({ length: 1_001 }, (_, at) => put(`one/blobs/${at}`, 1)))
  expect(await read()).toBe(1_001)
  await put('two/parts/more', 500)
  now = 59_999
  expect(await read()).toBe(1_001)
  now = 60_000
  expect(await read()).toBe(1_501)
})
