import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildArchive } from '../../../src/definition/build/build.ts'
import { planBuild } from '../../../src/definition/build/build-plan.ts'
import { readPlanned } from '../../../src/definition/build/check-plan.ts'
import { defaultLimits, type ArchiveLimits } from '../../../src/archive/limits.ts'
import { exportedProfile } from '../../support/tar-bytes.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'definition-refusal-'))
  mkdirSync(join(home, 'pack'))
  writeFileSync(join(home, 'pack/pack.json'), JSON.stringify({ name: 'a', version: '1.0', layer: 'addon' }))
})
afterEach(() => rmSync(home, { recursive: true }))

interface Change {
  readonly metadata?: object
  readonly version?: string | undefined
}

function writeProfile(name: string, { metadata = {}, ...spec }: Change = {}): string {
  const exported = exportedProfile(name, {}, spec)
  const file = join(home, `${name}.json`)
  writeFileSync(file, JSON.stringify({ ...exported, metadata: { ...exported.metadata, ...metadata } }))
  return file
}

interface Wish {
  readonly name?: string
  readonly version?: string
  readonly limits?: Partial<ArchiveLimits>
}

/** Code, place and message of all problems. */
async function refusalsOf(profiles: readonly string[], { limits: some = {}, ...title }: Wish = {}) {
  const limits = { ...defaultLimits, ...some }
  const plan = planBuild({ profiles, packs: [join(home, 'pack')], limits })
  expect(plan.problems).toEqual([])
  const { problems } = await readPlanned({ plan, ...title, limits })
  return problems.map(({ code, place, message }) => `${code} ${place.replace(`${home}/`, '')}: ${message}`)
}

describe('a definition is not built', () => {
  it('a definition that its reader accepts is built', async () => {
    expect(await refusalsOf([writeProfile('u1')])).toEqual([])
  })

  it.each<[string, Change, Wish, string]>([
    [
      'with a name that is too long',
      { metadata: { name: 'n'.repeat(254) } },
      {},
      'FieldInvalid u1.json#metadata.name: has 254 characters; 253 are allowed',
    ],
    [
      'with a --name that is too long',
      {},
      { name: 'n'.repeat(254) },
      'FieldInvalid --name: has 254 characters; 253 are allowed',
    ],
    [
      'with a description that is too long',
      { metadata: { description: 'd'.repeat(4_097) } },
      {},
      'FieldInvalid u1.json#metadata.description: has 4097 characters; 4096 are allowed',
    ],
    [
      'with a malformed --release',
      {},
      { version: 'next' },
      'VersionInvalid --release: the definition has the malformed version "next"',
    ],
  ])('a definition %s is not built', async (_title, change, wish, expected) => {
    expect(await refusalsOf([writeProfile('u1', change)], wish)).toEqual([expected])
  })

  it('a definition of a profile without version is not built, even with --release', async () => {
    const file = writeProfile('u1', { version: undefined })
    const missing = 'VersionInvalid u1.json#spec.version: profile profile u1 has the malformed version ""'
    expect(await refusalsOf([file])).toEqual([missing])
    expect(await refusalsOf([file], { version: '1.0' })).toEqual([missing])
  })

  it('a definition of more than 200 profiles is not built', async () => {
    const files = Array.from({ length: 201 }, (_, index) => writeProfile(`u${index}`))
    expect(await refusalsOf(files.slice(1))).toEqual([])
    expect(await refusalsOf(files)).toEqual(['FieldInvalid --profile: has 201 items; 200 are allowed'])
  })

  it('a definition of profiles whose names are too long in total is not built', async () => {
    const files = Array.from({ length: 150 }, (_, index) =>
      writeProfile(`u${index}`, { metadata: { name: index === 0 ? 'first' : 'n'.repeat(500) } }),
    )
    expect(await refusalsOf(files)).toMatchObject([
      expect.stringMatching(/^FieldInvalid --profile: .* characters before its sums; 65536 are allowed$/),
    ])
  })

  it('a definition with texts that a reader refuses is not built', async () => {
    writeFileSync(join(home, 'pack/values.yaml'), Buffer.from([0x61, 0xff]))
    writeFileSync(
      join(home, 'pack/pack.json'),
      JSON.stringify({ name: 'a', version: '1.0', layer: 'addon', charts: ['charts/none.tgz'] }),
    )
    expect(await refusalsOf([writeProfile('u1')])).toEqual([
      'NotUtf8 pack/values.yaml: is not UTF-8; save it as UTF-8',
      'MemberMissing pack/pack.json#charts[0]: names charts/none.tgz, which is not in the folder of the pack',
    ])
  })

  it('a definition is not built if a text, all texts or all files are too large', async () => {
    writeFileSync(join(home, 'pack/values.yaml'), 'a: 1\n'.repeat(1_000))
    const file = writeProfile('u1')
    expect(await refusalsOf([file], { limits: { textBytes: 4_999 } })).toEqual([
      'MemberTooLarge pack/values.yaml: has 5000 bytes; 4999 are allowed for text',
    ])
    expect(await refusalsOf([file], { limits: { allTextBytes: 4_999 } })).toEqual([
      expect.stringContaining('TooLarge pack/values.yaml: '),
    ])
    expect(await refusalsOf([file], { limits: { unpackedBytes: 4_999 } })).toEqual([
      expect.stringMatching(/^TooLarge --pack: has \d+ bytes in total; 4999 are allowed$/),
    ])
  })

  it.each<[string, (path: string) => unknown, string]>([
    [
      'a pipe without a writer',
      (path) => execFileSync('mkfifo', [path]),
      'is a named pipe, not a regular file',
    ],
    [
      'a link to an endless device',
      (path) => symlinkSync('/dev/zero', path),
      'is a device, not a regular file',
    ],
    [
      'a file that is larger than the limit of all texts',
      (path) => {
        writeFileSync(path, '')
        truncateSync(path, 2 ** 40)
      },
      'has more than 268435456 bytes',
    ],
  ])(
    'a definition is not built from %s as a profile or pack.json, which is not read to its end',
    (_what, make, reason) => {
      const profile = join(home, 'endless.json')
      make(profile)
      rmSync(join(home, 'pack/pack.json'))
      make(join(home, 'pack/pack.json'))
      const { problems } = planBuild({
        profiles: [profile],
        packs: [join(home, 'pack')],
        limits: defaultLimits,
      })
      const message = `${reason}; give the exported file or folder`
      expect(problems).toMatchObject([
        { code: 'FileMissing', place: profile, message },
        { code: 'FileMissing', place: join(home, 'pack/pack.json'), message },
      ])
    },
  )

  it.each(['d.tgz', 'd.tar.zst'])(
    'a definition is not built as %s if it becomes so small that it looks like a bomb',
    async (name) => {
      writeFileSync(join(home, 'pack/zeros.bin'), '')
      truncateSync(join(home, 'pack/zeros.bin'), 64 * 2 ** 20)
      const plan = planBuild({
        profiles: [writeProfile('u1')],
        packs: [join(home, 'pack')],
        limits: defaultLimits,
      })
      expect((await readPlanned({ plan, limits: defaultLimits })).problems).toEqual([])
      await expect(buildArchive({ plan, file: join(home, name) })).rejects.toMatchObject({
        code: 'ArchiveTooLarge',
        details: { reason: 'RatioTooHigh' },
      })
      expect(readdirSync(home).sort()).toEqual(['pack', 'u1.json'])
    },
  )
})
