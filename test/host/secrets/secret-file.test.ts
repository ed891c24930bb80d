import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readOrMakeSecret } from '../../../src/secrets/secret-file.ts'
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

it('makes a secret on the first start, for its owner only', async () => {
  const secret = await read()
  expect(secret).toHaveLength(32)
  expect(await mode()).toBe(0o600)
  expect((await readFile(file)).equals(secret)).toBe(true)
})

it('gives the same secret from then on', async () => {
  expect((await read()).equals(await read())).toBe(true)
})

it('takes back what others may do with the file', async () => {
  const secret = await read()
  await chmod(file, 0o644)
  expect((await read()).equals(secret)).toBe(true)
  expect(await mode()).toBe(0o600)
})

it.each([0, 31, 33])('replaces one of %i bytes', async (bytes) => {
  await writeFile(file, Buffer.alloc(bytes))
  expect((await read()).equals(Buffer.alloc(32))).toBe(false)
  expect(await readFile(file)).toHaveLength(32)
  expect(await mode()).toBe(0o600)
})

it('does not write through a link', async () => {
  const target = join(folder, 'target')
  await writeFile(target, 'short')
  await symlink(target, file)
  await expect(read()).rejects.toThrow('not a regular file')
  expect(await readFile(target, 'utf8')).toBe('short')
})

it('does not take a folder that cannot be read for a first start', async () => {
  file = join(folder, 'secret')
  await writeFile(join(folder, 'not-a-folder'), '')
  file = join(folder, 'not-a-folder', 'secret')
  await expect(read()).rejects.toThrow('ENOTDIR')
})
