import { createHash } from 'node:crypto'
import {
  existsSync,
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
import { zstdDecompressSync } from 'node:zlib'
import { execaSync } from 'execa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../support/open-database.ts'
import { readStatistics } from '../../../src/store/statistics.ts'
import { writeArchive, type Member, collect, type Collected } from '../../../src/support/collect.ts'
import { captureLog } from '../../support/https-server.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'support-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Bytes that do not compress, the same each time. */
const shake = (outputLength: number) => createHash('shake256', { outputLength }).update('').digest()

describe('an archive', () => {
  it('tar can unpack the archive, which only its owner may read', async () => {
    const file = join(folder, 'a.tar.zst')
    const large = Buffer.alloc(3_000_000, 'journal ')
    async function* members(): AsyncGenerator<Member> {
      yield { name: 'top/one.txt', content: Buffer.from('one') }
      yield { name: 'top/none.txt', content: Buffer.alloc(0) }
      yield { name: 'top/large.txt', content: large }
    }
    await writeArchive(file, members(), { madeAt: Date.UTC(2026, 0, 31) }, () => undefined)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const list = execaSync('tar', ['-tv'], { input: zstdDecompressSync(readFileSync(file)) }).stdout
    expect(list.match(/^-rw------- .* 2026-01-31 .* top\/(one|none|large)\.txt$/gm)).toHaveLength(3)
    const content = execaSync('tar', ['-xO', 'top/large.txt'], {
      input: zstdDecompressSync(readFileSync(file)),
      encoding: 'buffer',
      stripFinalNewline: false,
    }).stdout
    expect(large.equals(content)).toBe(true)
  })

  it('the archive is not written through a link in its folder', async () => {
    const [file, victim] = [join(folder, 'a.tar.zst'), join(folder, 'victim')]
    writeFileSync(victim, 'old')
    symlinkSync(victim, `${file}.part`)
    async function* members(): AsyncGenerator<Member> {
      yield { name: 'one.txt', content: Buffer.from('one') }
    }
    const begun: string[] = []
    await writeArchive(file, members(), { madeAt: 0 }, (temporary) => void begun.push(temporary))
    expect(begun).toHaveLength(1)
    expect(readFileSync(victim, 'utf8')).toBe('old')
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  // Only root may mount.
  it.skipIf(process.getuid?.() !== 0)(
    'on a full disk the archive is named, and no file is left',
    async () => {
      execaSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'edgehostd-test', folder])
      try {
        const file = join(folder, 'a.tar.zst')
        async function* members(): AsyncGenerator<Member> {
          yield { name: 'one.txt', content: shake(1_000_000) }
        }
        await expect(writeArchive(file, members(), { madeAt: 0 }, () => undefined)).rejects.toThrow(
          `${file} could not be written: no space left on device (ENOSPC)`,
        )
        expect(readdirSync(folder)).toEqual([])
      } finally {
        execaSync('umount', [folder])
      }
    },
  )

  it('a failed archive leaves no file', async () => {
    const file = join(folder, 'a.tar.zst')
    async function* members(): AsyncGenerator<Member> {
      yield { name: 'one.txt', content: Buffer.alloc(1_000_000) }
      throw new Error('no more')
    }
    await expect(writeArchive(file, members(), { madeAt: 0 }, () => undefined)).rejects.toThrow('no more')
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('what is collected', () => {
  it('sources and problems are masked, and a source that fails does not stop the others', async () => {
    const begun: string[] = []
    const ended: Collected[] = []
    const members = collect({
      sources: [
        { name: 'a.txt', from: 'a', read: async () => 'a secret' },
        { name: 'b.txt', from: 'b', read: () => Promise.reject(new Error('no secret')) },
        { name: 'c.txt', from: 'c', read: async () => 'c' },
      ],
      mask: (text) => text.replace('secret', 'thing'),
      folder: 'top',
      onBegin: ({ from }) => begun.push(from),
      onEnd: (each) => ended.push(each),
    })
    const files = []
    for await (const { name, content } of members) files.push([name, content.toString()])
    expect(files).toEqual([
      ['top/a.txt', 'a thing'],
      ['top/c.txt', 'c'],
    ])
    expect(begun).toEqual(['a', 'b', 'c'])
    expect(ended).toMatchObject([{ bytes: 7 }, { bytes: 0, problem: 'no thing' }, { bytes: 1 }])
  })
})

describe('the statistics of a database', () => {
  it('the statistics of a database are read while the daemon writes it', () => {
    const file = join(folder, 'edgehostd.db')
    const database = openDatabase(file, captureLog().log)
    database.sql.exec("INSERT INTO account (name, first_login_at) VALUES ('a', 1), ('b', 2)")
    const found = readStatistics(file)
    database.close()
    expect(found).toMatchObject({ check: ['ok'], pageBytes: 4_096 })
    expect(found.schema).toBeGreaterThan(0)
    expect(found.tables.account).toMatchObject({ rows: 2 })
    expect(found.tables.account?.bytes).toBeGreaterThanOrEqual(4_096)
    expect(found.bytes + found.logBytes).toBeGreaterThan(0)
    // Also when it has stopped.
    expect(readStatistics(file).tables.account).toMatchObject({ rows: 2 })
  })

  it('the statistics do not create a missing database', () => {
    const file = join(folder, 'none.db')
    expect(() => readStatistics(file)).toThrow(/unable to open/)
    expect(existsSync(file)).toBe(false)
  })
})
