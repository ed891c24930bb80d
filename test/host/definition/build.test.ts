import {
  chmodSync,
  cpSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execaSync } from 'execa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildArchive } from '../../../src/definition/build/build.ts'
import { planBuild } from '../../../src/definition/build/build-plan.ts'
import { extractDefinition, readDefinition } from '../../../src/definition/read/read-definition.ts'
import { defaultLimits as limits } from '../../../src/archive/limits.ts'
import { compressions, exportedProfile, rawTar, sha256, signedMembers } from '../../support/tar-bytes.ts'
import { noise } from '../../support/random.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'definition-build-'))
})
afterEach(() => rmSync(home, { recursive: true }))

const variables = [
  { name: 'site', format: 'string', required: true, defaultValue: 'hall 1', hidden: null },
  { name: 'password', isSensitive: true, options: [{ value: 'a', default: true }] },
]

/** A pack folder with everything that public packs have, and with stray files. */
function writePack(folder: string, name: string, version = '1.0.0') {
  const write = (path: string, content: string | Buffer) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  write(
    'pack.json',
    JSON.stringify({
      name,
      version,
      layer: 'addon',
      charts: [`charts/${name}.tgz`],
      kubeManifests: ['manifests/a.yaml'],
    }),
  )
  write('values.yaml', 'pack:\n  namespace: a\n')
  write('manifests/a.yaml', 'kind: A\n---\nkind: B\n')
  write('manifests/notes.txt', 'no manifest')
  write(`charts/${name}.tgz`, Buffer.alloc(300_000, `chart of ${name}`))
  write(`charts/${name}/templates/${'long-'.repeat(30)}é.yaml`, '{{ .Values.a }}')
  write('logo.png', Buffer.from([1, 2, 3]))
  write('values.yaml.orig', 'stray')
  write('empty', '')
}

/** This many bytes that can be compressed, and as many that cannot. */
function writeLarge(path: string, halfBytes: number) {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, Buffer.concat([Buffer.alloc(halfBytes, 'text '), noise(halfBytes)]))
}

function writeInputs(folder = home) {
  mkdirSync(folder, { recursive: true })
  writePack(join(folder, 'b-pack'), 'beta', '0.30.0-5.5.2026')
  writePack(join(folder, 'a-pack'), 'alpha')
  const infra = exportedProfile('u2', {}, { variables })
  const addon = exportedProfile('u1', {
    type: 'add-on',
    packs: [{ name: 'alpha', tag: '1.0.0', manifests: null }],
  })
  writeFileSync(join(folder, 'infra.json'), JSON.stringify(infra))
  writeFileSync(join(folder, 'addon.json'), JSON.stringify(addon))
}

const build = (file: string, profiles: string[], packs: string[]) =>
  buildArchive({ plan: planBuild({ profiles, packs, limits }), file })

const paths = (folder: string, ...names: string[]) => names.map((name) => join(folder, name))

describe.each(['d.tgz', 'd.tar.zst'])('%s', (name) => {
  it('an archive has the same bytes from other folders, in another order, with other times, modes and umask', async () => {
    writeInputs()
    await build(join(home, name), paths(home, 'infra.json', 'addon.json'), paths(home, 'b-pack', 'a-pack'))
    const other = join(home, 'other')
    mkdirSync(other)
    for (const each of ['infra.json', 'addon.json', 'a-pack', 'b-pack'])
      cpSync(join(home, each), join(other, `x-${each}`), { recursive: true })
    utimesSync(join(other, 'x-a-pack/values.yaml'), 1, 1)
    chmodSync(join(other, 'x-a-pack/values.yaml'), 0o755)
    writeFileSync(join(other, 'x-a-pack/.DS_Store'), 'left out')
    const before = process.umask(0o077)
    try {
      await build(
        join(other, name),
        paths(other, 'x-addon.json', 'x-infra.json'),
        paths(other, 'x-a-pack', 'x-b-pack'),
      )
    } finally {
      process.umask(before)
    }
    const [one, two] = [join(home, name), join(other, name)].map((file) => sha256(readFileSync(file)))
    expect(one).toBe(two)
    writeFileSync(join(other, 'x-a-pack/values.yaml'), 'another: 1\n')
    await build(
      join(other, name),
      paths(other, 'x-addon.json', 'x-infra.json'),
      paths(other, 'x-a-pack', 'x-b-pack'),
    )
    expect(sha256(readFileSync(join(other, name)))).not.toBe(one)
    expect(readdirSync(other).filter((each) => each.endsWith('.part'))).toEqual([])
  })

  it('an archive is listed and unpacked by tar', async () => {
    writeInputs()
    await build(join(home, name), paths(home, 'infra.json'), paths(home, 'a-pack'))
    const list = execaSync('tar', ['-tvf', join(home, name)]).stdout.split('\n')
    expect(list).toHaveLength(12)
    for (const line of list) expect(line).toMatch(/^-rw-r--r-- (0|root)\/(0|root) +\d+ 1980-01-01/)
    const to = join(home, 'tar')
    mkdirSync(to)
    expect(execaSync('tar', ['-xf', join(home, name), '-C', to]).stderr).toBe('')
    const sums =
      /^sha256: \|\n((?: {2}.*\n)+)$/m.exec(readFileSync(join(to, 'definition.yaml'), 'utf8'))?.[1] ?? ''
    const checked = execaSync('sha256sum', ['-c', '-'], { cwd: to, input: sums.replaceAll(/^ {2}/gm, '') })
    expect(checked.stdout.split('\n')).toHaveLength(11)
  })

  it('an archive of many megabytes is complete and has the same bytes each time', async () => {
    writeInputs()
    // Half of it can be compressed; some blocks end inside a file.
    for (const path of ['charts/alpha.tgz', 'files/more']) writeLarge(join(home, 'a-pack', path), 3_000_001)
    for (const each of ['first', 'second'])
      await build(join(home, each + name), paths(home, 'infra.json'), paths(home, 'a-pack'))
    const [first, second] = ['first', 'second'].map((each) => readFileSync(join(home, each + name)))
    expect(second?.equals(first ?? Buffer.of())).toBe(true)
    const { folder, members } = await extractDefinition({
      source: createReadStream(join(home, `first${name}`)),
      folder: join(home, 'staging'),
    })
    expect(members.size).toBeGreaterThan(5)
    const more = 'packs/alpha-1.0.0/files/more'
    expect(readFileSync(join(folder, more)).equals(readFileSync(join(home, 'a-pack/files/more')))).toBe(true)
    expect(
      execaSync('tar', ['-xOf', join(home, `first${name}`), more], {
        encoding: 'buffer',
        stripFinalNewline: false,
      }).stdout.length,
    ).toBe(6_000_002)
  })

  it.skipIf(process.getuid?.() !== 0)('a build on a full disk says so and leaves nothing', async () => {
    writeInputs()
    writeLarge(join(home, 'a-pack/charts/alpha.tgz'), 5_000_000)
    const small = join(home, 'small')
    mkdirSync(small)
    execaSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', small])
    try {
      const built = build(join(small, name), paths(home, 'infra.json'), paths(home, 'a-pack'))
      await expect(built).rejects.toMatchObject({ code: 'ENOSPC' })
      expect(readdirSync(small)).toEqual([])
    } finally {
      execaSync('umount', [small])
    }
  })

  it('files with a byte order mark are accepted', async () => {
    writeInputs()
    for (const name of ['infra.json', 'a-pack/pack.json']) {
      const file = join(home, name)
      writeFileSync(file, `\uFEFF${readFileSync(file, 'utf8')}`)
    }
    await build(join(home, 'd.tgz'), paths(home, 'infra.json'), paths(home, 'a-pack'))
    const read = await readDefinition(
      await extractDefinition({
        source: createReadStream(join(home, 'd.tgz')),
        folder: join(home, 'staging'),
      }),
    )
    expect(read.problems).toEqual([])
    expect(read.definition).toMatchObject({ name: 'profile u2', packs: [{ name: 'alpha' }] })
  })

  it('an archive that is read again is the definition that was built', async () => {
    writeInputs()
    const built = await build(
      join(home, name),
      paths(home, 'infra.json', 'addon.json'),
      paths(home, 'b-pack', 'a-pack'),
    )
    expect(built).toMatchObject({ name: 'profile u2', version: '1.0.0' })
    const extracted = await extractDefinition({
      source: createReadStream(join(home, name)),
      folder: join(home, 'staging'),
    })
    const { definition, problems } = await readDefinition(extracted)
    expect(problems).toEqual([])
    expect(definition).toMatchObject({
      formatVersion: 1,
      name: 'profile u2',
      version: '1.0.0',
      description: 'made for a test',
    })
    expect(definition.profiles.map(({ uid, type }) => [uid, type])).toEqual([
      ['u1', 'add-on'],
      ['u2', 'infra'],
    ])
    expect(definition.profiles[1]?.variables).toEqual([
      { name: 'site', format: 'string', required: true, defaultValue: 'hall 1' },
      { name: 'password', isSensitive: true, options: [{ value: 'a', default: true }] },
    ])
    expect(definition.packs).toEqual([
      {
        place: 'packs/alpha-1.0.0',
        name: 'alpha',
        version: '1.0.0',
        displayName: 'alpha',
        layer: 'addon',
        values: 'pack:\n  namespace: a\n',
        manifests: [{ place: 'packs/alpha-1.0.0/manifests/a.yaml', content: 'kind: A\n---\nkind: B\n' }],
        charts: ['packs/alpha-1.0.0/charts/alpha.tgz'],
        named: {
          manifests: ['packs/alpha-1.0.0/manifests/a.yaml'],
          charts: ['packs/alpha-1.0.0/charts/alpha.tgz'],
        },
        logo: 'packs/alpha-1.0.0/logo.png',
        dependencies: [],
        schema: undefined,
        presets: [],
      },
      expect.objectContaining({ place: 'packs/beta-0.30.0-5.5.2026' }),
    ])
  })
})

describe('what is to be packed', () => {
  it('all problems of the input are reported at once, each with its place', () => {
    writeInputs()
    writeFileSync(join(home, 'broken.json'), '{\n  "metadata": {} x}')
    writeFileSync(
      join(home, 'shape.json'),
      '{"metadata":{"uid":"../x"},"spec":{"template":{"type":"full","packs":{}}}}',
    )
    writeFileSync(join(home, 'proto.json'), '{"metadata":{"__proto__":{"a":1}}}')
    symlinkSync('/etc/passwd', join(home, 'a-pack/link'))
    const { problems } = planBuild({
      profiles: paths(
        home,
        'broken.json',
        'shape.json',
        'proto.json',
        'none.json',
        'infra.json',
        'infra.json',
      ),
      packs: paths(home, 'a-pack', 'no-pack'),
      limits,
    })
    expect(problems.map(({ code, place }) => `${code} ${place.replace(`${home}/`, '')}`)).toEqual([
      'JsonInvalid broken.json:2:18',
      'FieldMissing shape.json#metadata.name',
      'FieldInvalid shape.json#metadata.uid',
      'FieldInvalid shape.json#spec.template.type',
      'FieldInvalid shape.json#spec.template.packs',
      'KeyForbidden proto.json#metadata.__proto__',
      'FileMissing none.json',
      'ProfileTwice infra.json',
      'FileMissing no-pack',
      'MemberKind a-pack/link',
    ])
  })

  it('a file that changes meanwhile ends the build, and nothing is left', async () => {
    writeInputs()
    for (const content of ['longer than it was before', '']) {
      const plan = planBuild({ profiles: paths(home, 'infra.json'), packs: paths(home, 'a-pack'), limits })
      writeFileSync(join(home, 'a-pack/values.yaml'), content)
      await expect(buildArchive({ plan, file: join(home, 'd.tgz') })).rejects.toThrow(
        'changed while it was packed',
      )
      writePack(join(home, 'a-pack'), 'alpha')
    }
    expect(readdirSync(home).filter((each) => each.startsWith('d.'))).toEqual([])
  })
})

describe('a definition', () => {
  const open = async (files: Record<string, string>, isSigned = true) => {
    const members = isSigned
      ? signedMembers(files)
      : Object.entries(files).map(([name, content]) => ({ name, content }))
    const file = join(home, 'd.tgz')
    writeFileSync(file, compressions.gzip(rawTar(members)))
    return readDefinition(
      await extractDefinition({ source: createReadStream(file), folder: join(home, 'staging') }),
    )
  }
  const profile = JSON.stringify(exportedProfile())

  it('a profile of the existing layout without a uid has that of its folder', async () => {
    const files = {
      'spc/app/profiles/65f0c2/profile.json': JSON.stringify({
        ...exportedProfile(),
        metadata: { name: 'shop' },
      }),
    }
    const { definition, problems } = await open(files, false)
    expect(problems.map(({ code }) => code)).toEqual(['SumsMissing'])
    expect(definition.profiles[0]?.uid).toBe('65f0c2')
  })

  it('a definition in the existing layout is read, with a warning that it has no sums', async () => {
    for (const name of ['profile.json', 'exported.json']) {
      const { definition, problems } = await open(
        {
          [`spc/app/profiles/u1/${name}`]: profile,
          'spc/app/profiles/u1/variables.json': '{"variables":[{"name":"a","defaultValue":"1"}]}',
        },
        false,
      )
      expect(problems.map(({ code, severity }) => [code, severity])).toEqual([['SumsMissing', 'warning']])
      expect(definition).toMatchObject({ formatVersion: 0, name: 'profile u1', version: '1.0.0', packs: [] })
      expect(definition.profiles[0]?.variables).toEqual([{ name: 'a', defaultValue: '1' }])
      rmSync(join(home, 'staging'), { recursive: true })
    }
  })

  it('a definition with problems of its form reports them with their places and has all valid parts', async () => {
    const { definition, problems } = await open({
      'profiles/u1/profile.json': profile,
      'profiles/u1/variables.json':
        '{"variables":[{"name":"a"},{"name":7},{"name":"b","inputType":"slider"}]}',
      'profiles/u2/profile.json': profile,
      'profiles/u3/variables.json': '{}',
      'packs/a-1/pack.json': '{"name":"a","version":"1","layer":"addon","charts":["charts/none.tgz"]}',
      'packs/b-1/values.yaml': 'a: 1',
      'packs/c-1/pack.json': '{"name":"c","version":1}',
    })
    expect(problems.map(({ code, place }) => `${code} ${place}`)).toEqual([
      'FieldInvalid profiles/u1/variables.json#variables[1].name',
      'FieldInvalid profiles/u1/variables.json#variables[2].inputType',
      'FieldInvalid profiles/u2/profile.json#metadata.uid',
      'MemberMissing profiles/u3/profile.json',
      'MemberMissing packs/a-1/pack.json#charts[0]',
      'MemberMissing packs/b-1/pack.json',
      'FieldInvalid packs/c-1/pack.json#version',
      'FieldMissing packs/c-1/pack.json#layer',
      'ProfileUnlisted profiles/u2',
      'ProfileUnlisted profiles/u3',
    ])
    expect(definition.profiles.map(({ place }) => place)).toEqual([
      'profiles/u1/profile.json',
      'profiles/u2/profile.json',
    ])
    expect(definition.packs.map(({ place }) => place)).toEqual(['packs/a-1'])
  })
})
