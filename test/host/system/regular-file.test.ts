import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHostFiles } from '../../../src/host/files.ts'
import { readConfigFile } from '../../../src/config/load.ts'
import { createAccountFiles } from '../../../src/auth/accounts.ts'
import { inspectOwnPair } from '../../../src/certificate/pair.ts'
import { readPrivate } from '../../../src/ctl/folder.ts'
import { readOrMakeSecret } from '../../../src/secrets/secret-file.ts'
import { readRegularFile, readRegularFileSync } from '../../../src/system/regular-file.ts'
import { createSecretKey } from 'node:crypto'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'regular-file-'))
  file = join(folder, 'it')
})
afterEach(() => rmSync(folder, { recursive: true }))

/** What may be found in place of a file, and the error for it. */
const odd: Record<string, readonly [make: () => unknown, said: string]> = {
  'a pipe that nothing writes into': [() => execFileSync('mkfifo', ['-m', '600', file]), 'is a named pipe'],
  'a device without an end': [() => symlinkSync('/dev/zero', file), 'is a device'],
  'a folder': [() => mkdirSync(file), 'is a folder'],
  '300 MB of nothing': [
    () => {
      writeFileSync(file, '', { mode: 0o600 })
      truncateSync(file, 300_000_000)
    },
    'has more than ',
  ],
}

const readers: Record<string, () => unknown> = {
  'of files that may lie on a disk': () => readRegularFile(file, 1_048_576),
  'of files in memory': () => readRegularFileSync(file, 1_048_576),
  'of host facts on a disk': () => createHostFiles(folder).text('/it'),
  'of the configuration': () => {
    const read = readConfigFile(file)
    if ('reason' in read) throw new Error(read.reason)
  },
  'of a certificate': async () => {
    const found = await inspectOwnPair({ certificateFile: file, keyFile: file })
    if ('problems' in found) throw found.problems[0]
  },
  'of a secret of the daemon': () => readOrMakeSecret(file, 32, () => Buffer.alloc(32)),
  'of account files': () => {
    symlinkSync('it', join(folder, 'passwd'))
    const markKey = createSecretKey(Buffer.alloc(32))
    createAccountFiles({ adminGroups: [], markKey, etc: folder }).has('root')
  },
  'of what edgehostctl keeps': () => readPrivate(file),
}

describe.each(Object.entries(odd))('%s', (_, [make, said]) => {
  it.each(Object.entries(readers))('an odd file is refused at once by the reader %s', async (_name, read) => {
    make()
    await expect((async () => await read())()).rejects.toThrow(said)
  })
})

describe('a regular file', () => {
  it('a regular file is read whole, also through a link', async () => {
    const bytes = Buffer.alloc(700_000, 'a line of text\n')
    writeFileSync(join(folder, 'target'), bytes)
    symlinkSync('target', file)
    expect((await readRegularFile(file, 700_000)).bytes.equals(bytes)).toBe(true)
    expect(readRegularFileSync(file, 700_000).bytes.equals(bytes)).toBe(true)
  })

  it('a regular file may be empty', async () => {
    writeFileSync(file, '')
    expect((await readRegularFile(file, 1)).bytes).toHaveLength(0)
    expect(readRegularFileSync(file, 1).bytes).toHaveLength(0)
  })

  it('a file that reports a smaller size than it has, as those of the kernel do, is cut off at the bound', async () => {
    // Its size is 0 and it has some megabytes.
    const large = '/proc/kallsyms'
    await expect(readRegularFile(large, 65_536)).rejects.toThrow(`${large} has more than 65536 bytes`)
    expect(() => readRegularFileSync(large, 65_536)).toThrow(`${large} has more than 65536 bytes`)
    expect((await readRegularFile(large, 100_000_000)).bytes.length).toBeGreaterThan(65_536)
  })

  it('a link to /dev/null is an empty file', async () => {
    symlinkSync('/dev/null', file)
    expect((await readRegularFile(file, 1)).bytes).toHaveLength(0)
    expect(readRegularFileSync(file, 1).bytes).toHaveLength(0)
  })

  it('a missing file gives the error of the system', async () => {
    await expect(readRegularFile(file, 1)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(() => readRegularFileSync(file, 1)).toThrow(expect.objectContaining({ code: 'ENOENT' }))
  })

  it('a socket is not a regular file', async () => {
    const server = createServer().listen(file)
    await new Promise((resolve) => server.once('listening', resolve))
    await expect(readRegularFile(file, 1)).rejects.toThrow(`${file} is a socket, not a regular file`)
    await new Promise((resolve) => server.close(resolve))
  })
})
