import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
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
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { replaceFile, sweepTemporary } from '../../../src/system/files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'files-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('replaceFile', () => {
  it('a new file has the given mode, regardless of the umask', async () => {
    const before = process.umask(0o077)
    await replaceFile(join(folder, 'a'), 'text', 0o644).finally(() => process.umask(before))
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('text')
    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o644)
  })

  it('content and mode are replaced, and no temporary file is left', async () => {
    writeFileSync(join(folder, 'a'), 'old', { mode: 0o644 })
    await replaceFile(join(folder, 'a'), Buffer.from('new'), 0o600)
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new')
    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(['a'])
  })

  it('a link is not replaced, and its target is unchanged', async () => {
    writeFileSync(join(folder, 'target'), 'old')
    symlinkSync('target', join(folder, 'link'))
    await expect(replaceFile(join(folder, 'link'), 'new', 0o600)).rejects.toThrow('not a regular file')
    expect(readFileSync(join(folder, 'target'), 'utf8')).toBe('old')
  })

  it('a folder and a pipe are not replaced', async () => {
    mkdirSync(join(folder, 'sub'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
    await expect(replaceFile(join(folder, 'sub'), 'new', 0o600)).rejects.toThrow('not a regular file')
    await expect(replaceFile(join(folder, 'pipe'), 'new', 0o600)).rejects.toThrow('not a regular file')
  })

  it('a full disk is an error that keeps the old content and leaves no temporary file', async () => {
    // The limit on file sizes (RLIMIT_FSIZE) stands in for the full disk.
    const script = `
      import { replaceFile } from '${join(import.meta.dirname, '../../../src/system/files.ts')}'
      process.on('SIGXFSZ', () => undefined)
      await replaceFile(process.argv[1], 'x'.repeat(64 * 1024), 0o600).catch((error) => console.log(error.code))`
    writeFileSync(join(folder, 'a'), 'old')
    const printed = execFileSync(
      'bash',
      [
        '-c',
        'ulimit -f 16; exec "$0" --input-type=module -e "$1" "$2"',
        process.execPath,
        script,
        join(folder, 'a'),
      ],
      { encoding: 'utf8' },
    )
    expect(printed.trim()).toBe('EFBIG')
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('old')
    expect(readdirSync(folder)).toEqual(['a'])
  })

  it('a reader finds the old content or the new one after a kill at any moment', async () => {
    const script = `
      import { replaceFile } from '${join(import.meta.dirname, '../../../src/system/files.ts')}'
      for (let i = 0; ; i++) {
        await replaceFile(process.argv[1], String(i % 10).repeat(100000), 0o600)
        if (i === 0) console.log('begun')
      }`
    const path = join(folder, 'a')
    for (let round = 0; round < 5; round++) {
      const writer = spawn(process.execPath, ['--input-type=module', '-e', script, path])
      await once(writer.stdout, 'data')
      for (let reads = 0; reads < 20 * round; reads++) {
        expect(readFileSync(path, 'utf8')).toMatch(/^(\d)\1{99999}$/)
      }
      writer.kill('SIGKILL')
      await once(writer, 'exit')
      expect(readFileSync(path, 'utf8')).toMatch(/^(\d)\1{99999}$/)
    }
    await sweepTemporary(folder)
    expect(readdirSync(folder)).toEqual(['a'])
  })
})

describe('sweepTemporary', () => {
  it('the temporary files of a killed write are removed, and no others', async () => {
    for (const name of ['.key.pem.0123456789abcdef.tmp', 'key.pem', '.hidden', '.key.pem.tmp', 'a.tmp']) {
      writeFileSync(join(folder, name), '')
    }
    expect(await sweepTemporary(folder)).toBe(1)
    expect(readdirSync(folder).sort()).toEqual(['.hidden', '.key.pem.tmp', 'a.tmp', 'key.pem'])
  })

  it('a missing folder has no temporary files', async () => {
    expect(await sweepTemporary(join(folder, 'none'))).toBe(0)
  })
})
