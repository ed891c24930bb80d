import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isUsableSecret, readOrMakeSecret } from '../../../src/secrets/secret-file.ts'
import { createSecret } from '../../../src/secrets/secrets.ts'

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-secret-'))
  file = join(folder, 'secret')
})
afterEach(() => rm(folder, { recursive: true }))

const read = () => readOrMakeSecret(file, 32, createSecret)
const mode = async () => (await stat(file)).mode & 0o777

it('a secret is made on the first start, for its owner only', async () => {
  const secret = await read()
  expect(secret).toHaveLength(32)
  expect(await mode()).toBe(0o600)
  expect((await readFile(file)).equals(secret)).toBe(true)
})

it('a secret stays the same once it is made', async () => {
  expect((await read()).equals(await read())).toBe(true)
})

it('other users lose their access to the file of a secret', async () => {
  const secret = await read()
  await chmod(file, 0o644)
  expect((await read()).equals(secret)).toBe(true)
  expect(await mode()).toBe(0o600)
})

it.each([0, 31, 33])('a secret of %i bytes is replaced', async (bytes) => {
  await writeFile(file, Buffer.alloc(bytes))
  expect((await read()).equals(Buffer.alloc(32))).toBe(false)
  expect(await readFile(file)).toHaveLength(32)
  expect(await mode()).toBe(0o600)
})

it.each([0, 255])(
  'a secret of 32 bytes that are all %i, as a power cut leaves them, is replaced',
  async (byte) => {
    await writeFile(file, Buffer.alloc(32, byte))
    expect(await isUsableSecret(file, 32)).toBe(false)
    expect((await read()).equals(Buffer.alloc(32, byte))).toBe(false)
    expect(await isUsableSecret(file, 32)).toBe(true)
  },
)

it('a secret is not written through a link', async () => {
  const target = join(folder, 'target')
  await writeFile(target, 'short')
  await symlink(target, file)
  await expect(read()).rejects.toThrow('not a regular file')
  expect(await readFile(target, 'utf8')).toBe('short')
})

it('a folder that cannot be read is not taken for a first start', async () => {
  file = join(folder, 'secret')
  await writeFile(join(folder, 'not-a-folder'), '')
  file = join(folder, 'not-a-folder', 'secret')
  await expect(read()).rejects.toThrow('ENOTDIR')
})
