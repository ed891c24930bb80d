import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createOfferedFiles } from '../../../src/diagnosis/files.ts'
import { readPart, ReadFailed } from '../../../src/api/send-file.ts'

function makeFolder() {
  const root = mkdtempSync(join(tmpdir(), 'edgehostd-files-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const folder = join(root, 'files')
  mkdirSync(folder)
  return { root, folder, offered: createOfferedFiles(folder), path: (name: string) => join(folder, name) }
}

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as { code?: string; message: string },
  )

it('only regular files of the first level with one name are listed; the others are counted', async () => {
  const { root, folder, offered, path } = makeFolder()
  writeFileSync(path('b.log'), 'two')
  writeFileSync(path('a.log'), '')
  mkdirSync(path('deeper'))
  writeFileSync(path('deeper/c.log'), 'x')
  writeFileSync(join(root, 'secret'), 'x')
  symlinkSync('../secret', path('link'))
  linkSync(join(root, 'secret'), path('hard'))
  execFileSync('mkfifo', [path('pipe')])
  execFileSync('sh', ['-c', `: > "${folder}/$(printf 'bad\\377')"`])
  const { files, omitted } = await offered.list()
  expect(files.map(({ name, sizeBytes }) => [name, sizeBytes])).toEqual([
    ['a.log', 0n],
    ['b.log', 3n],
  ])
  expect(omitted).toBe(5)
})

it('a link, a second hard link, a pipe, a socket, a folder and a path are not opened, and nothing waits for them', async () => {
  const { root, offered, path } = makeFolder()
  writeFileSync(join(root, 'secret'), 'x')
  symlinkSync('../secret', path('link'))
  linkSync(join(root, 'secret'), path('hard'))
  execFileSync('mkfifo', [path('pipe')])
  mkdirSync(path('folder'))
  const server = createServer().listen(path('socket'))
  onTestFinished(() => void server.close())
  for (const name of ['link', 'hard', 'pipe', 'socket', 'folder', '../secret', '..', '.', '', 'none', 'a\0b'])
    expect(await refusal(offered.open(name)), name).toMatchObject({ code: 'NotFound' })
})

it('a file with one name is opened with its size, and its ETag changes with its content', async () => {
  const { offered, path } = makeFolder()
  writeFileSync(path('app.log'), 'one\n')
  const first = await offered.open('app.log')
  await first.file.close()
  appendFileSync(path('app.log'), 'two\n')
  const second = await offered.open('app.log')
  await second.file.close()
  expect([first.sizeBytes, second.sizeBytes]).toEqual([4, 8])
  expect(second.etag).not.toBe(first.etag)
})

it('a file that grows is sent up to its size at the beginning, and one that shrinks is not taken for whole', async () => {
  const { offered, path } = makeFolder()
  writeFileSync(path('app.log'), 'a'.repeat(100_000))
  const read = async (change: () => void) => {
    const { file, sizeBytes } = await offered.open('app.log')
    change()
    let bytes = 0
    for await (const piece of readPart(file, { start: 0, sizeBytes })) bytes += (piece as Buffer).length
    return bytes
  }
  expect(await read(() => appendFileSync(path('app.log'), 'more'))).toBe(100_000)
  await expect(read(() => truncateSync(path('app.log'), 70_000))).rejects.toThrow(ReadFailed)
})

it('without the folder, and with a link in its place, the refusal says what to do', async () => {
  const { root, folder } = makeFolder()
  expect(await refusal(createOfferedFiles(join(root, 'none')).list())).toMatchObject({
    code: 'NotFound',
    message: expect.stringContaining('install -d') as string,
  })
  symlinkSync(folder, join(root, 'link'))
  expect(await refusal(createOfferedFiles(join(root, 'link')).list())).toMatchObject({
    code: 'NotFound',
    message: expect.stringContaining('diagnosis.filesDirectory') as string,
  })
})
