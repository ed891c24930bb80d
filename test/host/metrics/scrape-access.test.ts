import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readScrapeAccess, TokenFileUnusable } from '../../../src/metrics/scrape-access.ts'
import { captureLog } from '../../support/https-server.ts'

const { log, lines } = captureLog()
const token = 'a-token-of-some-length'
let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'scrape-access-'))
  file = join(folder, 'token')
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (text: string, mode = 0o600) => {
  writeFileSync(file, text)
  chmodSync(file, mode)
}
const problem = async () => {
  const error: unknown = await readScrapeAccess(file, log).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(TokenFileUnusable)
  return (error as Error).message
}

describe('a client on the host', () => {
  it.each(['127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1'])(
    'the loopback address %s is admitted',
    async (address) => {
      const access = await readScrapeAccess(undefined, log)
      expect(access.admits(address, undefined)).toBe(true)
      write(token)
      expect((await readScrapeAccess(file, log)).admits(address, 'Bearer wrong')).toBe(true)
    },
  )

  // An empty address is that of a Unix socket, which checks its clients itself.
  it.each(['128.0.0.1', '10.127.0.0', '::2', '::ffff:10.0.0.1', '', 'localhost'])(
    '"%s" is not on the host',
    async (address) => {
      expect((await readScrapeAccess(undefined, log)).admits(address, `Bearer ${token}`)).toBe(false)
    },
  )
})

describe('the token', () => {
  it.each([`Bearer ${token}`, `bearer ${token}`, `BEARER   ${token}`])(
    'the token is accepted as "%s"',
    async (field) => {
      write(`${token}\n`)
      expect((await readScrapeAccess(file, log)).admits('10.0.0.1', field)).toBe(true)
    },
  )

  it.each([
    undefined,
    '',
    token,
    'Bearer',
    'Bearer ',
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${token.toUpperCase()}`,
    `Bearer ${token} ${token}`,
    `Basic ${token}`,
  ])('the token is refused as "%s"', async (field) => {
    write(token)
    expect((await readScrapeAccess(file, log)).admits('10.0.0.1', field)).toBe(false)
  })

  it('the token is read again on reload', async () => {
    write(token)
    const access = await readScrapeAccess(file, log)
    write('another-token-of-some-length')
    await access.reload()
    expect(access.admits('10.0.0.1', `Bearer ${token}`)).toBe(false)
    expect(access.admits('10.0.0.1', 'Bearer another-token-of-some-length')).toBe(true)
  })

  it('the old token stays valid when the file cannot be used on reload, and the journal says why', async () => {
    write(token)
    const access = await readScrapeAccess(file, log)
    write('another-token-of-some-length', 0o640)
    await access.reload()
    expect(access.admits('10.0.0.1', `Bearer ${token}`)).toBe(true)
    expect(access.admits('10.0.0.1', 'Bearer another-token-of-some-length')).toBe(false)
    expect(JSON.stringify(lines.at(-1))).toContain('chmod 0600')
    expect(JSON.stringify(lines)).not.toContain('another-token')
  })
})

describe('a token file that cannot be used', () => {
  it.each([0o604, 0o640, 0o660, 0o644])('a token file of mode %o is refused with its cure', async (mode) => {
    write(token, mode)
    expect(await problem()).toBe(
      `metrics.tokenFile: ${file} has mode ${mode.toString(8)}, so others may read it: chmod 0600 ${file}`,
    )
  })

  it.runIf(process.getuid?.() === 0)('a token file of another owner is refused with its cure', async () => {
    write(token)
    chownSync(file, 65_534, 65_534)
    expect(await problem()).toContain('belongs to uid 65534')
  })

  it('a missing token file is refused with its cure', async () => {
    expect(await problem()).toContain('cannot be read: ENOENT')
  })

  it('a folder as token file is refused with its cure', async () => {
    symlinkSync(folder, file)
    expect(await problem()).toContain('is a folder, not a regular file')
  })

  it('a pipe as token file is refused with its cure', async () => {
    execFileSync('mkfifo', ['-m', '600', file])
    expect(await problem()).toContain('is a named pipe, not a regular file')
  })

  it.each(['', '\n', 'short', 'two words, each of some length', 'not-ascii-\u00e9-0123456789'])(
    'a token file with the content %j is refused with its cure',
    async (text) => {
      write(text)
      const message = await problem()
      expect(message).toContain('openssl rand -hex 32')
      if (text.trim() !== '') expect(message).not.toContain(text)
    },
  )

  it('a token file that is too large is refused with its cure', async () => {
    write('x'.repeat(5_000))
    expect(await problem()).toContain('more than 4096 bytes')
  })
})
