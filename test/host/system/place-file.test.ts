import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { placeFile } from '../../../src/system/place-file.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'place-file-'))
  file = join(folder, 'a.tar')
})
afterEach(() => rmSync(folder, { recursive: true }))

const place = async (path = file, content = 'new') => {
  const seen: string[] = []
  await placeFile({
    path,
    mode: 0o600,
    onBegin: (temporary) => void seen.push(temporary),
    async write(handle) {
      await handle.writeFile(content)
      // Until the file is complete.
      if (existsSync(path)) expect(readFileSync(path, 'utf8')).not.toBe(content)
    },
  })
  return seen
}

it('a file is written in the target folder under an unpredictable name', async () => {
  const [one = ''] = await place(file, 'old')
  const [two = ''] = await place()
  expect(dirname(one)).toBe(folder)
  expect(one).toMatch(/\/\.edgehost-[0-9a-f]{16}\.part$/)
  expect(two).not.toBe(one)
  expect(readFileSync(file, 'utf8')).toBe('new')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['a.tar'])
})

it('a file or link of another user under the temporary name is an error, and stays unchanged', async () => {
  const victim = join(folder, 'victim')
  writeFileSync(victim, 'old')
  for (const plant of [
    (path: string) => symlinkSync(victim, path),
    (path: string) => writeFileSync(path, 'other'),
  ]) {
    let planted = ''
    await expect(
      placeFile({
        ...{ path: file, mode: 0o600, write: (handle) => handle.writeFile('new') },
        onBegin(temporary) {
          planted = temporary
          plant(temporary)
        },
      }),
    ).rejects.toMatchObject({ code: 'EEXIST' })
    expect(existsSync(planted)).toBe(true)
    rmSync(planted)
  }
  expect(readFileSync(victim, 'utf8')).toBe('old')
  expect(existsSync(file)).toBe(false)
})

it('a link at the target path is replaced and not followed', async () => {
  const victim = join(folder, 'victim')
  writeFileSync(victim, 'old')
  symlinkSync(victim, file)
  await place()
  expect(lstatSync(file).isFile()).toBe(true)
  expect(readFileSync(victim, 'utf8')).toBe('old')
})

it('a failed write leaves the former file and no temporary file', async () => {
  writeFileSync(file, 'old')
  const failing = placeFile({
    ...{ path: file, mode: 0o600, onBegin: () => undefined },
    write: () => Promise.reject(new Error('no more')),
  })
  await expect(failing).rejects.toThrow('no more')
  expect(readFileSync(file, 'utf8')).toBe('old')
  expect(readdirSync(folder)).toEqual(['a.tar'])
})

it('a folder or a pipe is not replaced', async () => {
  mkdirSync(file)
  await expect(place()).rejects.toThrow('is not a regular file')
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  await expect(place(pipe)).rejects.toThrow('is not a regular file')
  expect(lstatSync(pipe).isFIFO()).toBe(true)
})

it('the longest possible file name is accepted', async () => {
  const long = join(folder, `${'a'.repeat(251)}.tar`)
  await place(long)
  expect(readFileSync(long, 'utf8')).toBe('new')
})

it.skipIf(process.getuid?.() === 0)(
  'a folder without write permission gives the error of the system',
  async () => {
    chmodSync(folder, 0o500)
    await expect(place()).rejects.toMatchObject({ code: 'EACCES' })
    chmodSync(folder, 0o700)
  },
)

it('the error of a missing folder names the command that creates it', async () => {
  await expect(place(join(folder, 'none/a.tar'))).rejects.toMatchObject({
    message: `the folder ${folder}/none is missing; make it first: mkdir -p ${folder}/none`,
    code: 'ENOENT',
  })
})
