import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'
import { digestOf } from '../../support/layout-files.ts'
import { rawTar, type RawMember } from '../../support/tar-bytes.ts'

let ctl: ContentCtl
const at = (name: string) => ctl.at(name)
beforeEach(() => {
  ctl = createContentCtl()
})
afterEach(() => ctl.remove())

const contentOf = (bundle: string, path: string) =>
  execFileSync('tar', ['-xOf', at(bundle), path], { encoding: 'utf8' })
const documentOf = (bundle: string, digest: string) =>
  JSON.parse(contentOf(bundle, `blobs/${digest.replace(':', '/')}`)) as {
    config: { digest: string; mediaType: string }
    layers: { digest: string; mediaType: string; annotations: Record<string, string> }[]
    manifests: { digest: string; platform: { architecture: string } }[]
    annotations: Record<string, string>
  }

async function refusal(...options: readonly string[]): Promise<string> {
  const { exitCode, stderr } = await ctl.build(...options, '--output', at('b.tar'))
  expect(exitCode).toBeGreaterThan(0)
  return stderr
}

describe('a chart in a bundle', () => {
  const chart = (text: string, ...more: RawMember[]) =>
    gzipSync(
      rawTar([
        { name: 'app/Chart.yaml', content: text },
        { name: 'app/values.yaml', content: 'a: 1\n' },
        ...more,
      ]),
    )
  const head = 'apiVersion: v2\nname: app\n'

  it('is the artifact that helm push makes, without the time of the push', async () => {
    const bytes = chart(
      `${head}version: 1.2.3+build.5\ndescription: An app\nhome: https://app.example\ndeprecated: false\nkeywords: []\nunknown: 1\nmaintainers:\n  - name: Ann\n    email: ann@app.example\nannotations:\n  team: shop\n`,
    )
    writeFileSync(at('app.tgz'), bytes)
    await ctl.built('--chart', at('app.tgz'), '--output', at('b.tar'))
    const { entries } = await ctl.inspected(at('b.tar'))
    expect(entries).toMatchObject([{ kind: 'chart', title: 'app', version: '1.2.3+build.5' }])
    expect(JSON.parse(contentOf('b.tar', 'index.json'))).toMatchObject({
      manifests: [{ annotations: { 'org.opencontainers.image.ref.name': 'app-1.2.3_build.5' } }],
    })
    const manifest = documentOf('b.tar', entries[0]!.digest)
    expect(manifest).toMatchObject({
      config: { mediaType: 'application/vnd.cncf.helm.config.v1+json' },
      layers: [{ mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', digest: digestOf(bytes) }],
    })
    expect(manifest.annotations).toEqual({
      'org.opencontainers.image.title': 'app',
      'org.opencontainers.image.version': '1.2.3+build.5',
      'org.opencontainers.image.description': 'An app',
      'org.opencontainers.image.url': 'https://app.example',
      'org.opencontainers.image.authors': 'Ann (ann@app.example)',
      team: 'shop',
    })
    expect(documentOf('b.tar', manifest.config.digest)).toEqual({
      ...{ apiVersion: 'v2', name: 'app', version: '1.2.3+build.5', description: 'An app' },
      ...{ home: 'https://app.example', maintainers: [{ name: 'Ann', email: 'ann@app.example' }] },
      annotations: { team: 'shop' },
    })
  })

  it('stays apart from its other versions and from an image of its name', async () => {
    for (const [file, version] of [
      ['one.tgz', '1.0.0'],
      ['two.tgz', '1.0.0-rc.1'],
      ['three.tgz', '1.0.0+5'],
    ] as const)
      writeFileSync(at(file), chart(`${head}version: ${version}\n`))
    await ctl.built(
      '--chart',
      at('one.tgz'),
      at('two.tgz'),
      '--chart',
      at('three.tgz'),
      '--output',
      at('b.tar'),
    )
    const { entries } = await ctl.inspected(at('b.tar'))
    expect(entries.map(({ title, version, name }) => `${title} ${version} ${name}`)).toEqual([
      ...['app 1.0.0 undefined', 'app 1.0.0+5 undefined', 'app 1.0.0-rc.1 undefined'],
    ])
  })

  it('given twice with different content is refused, naming both files', async () => {
    writeFileSync(at('one.tgz'), chart(`${head}version: 1.0.0\n`))
    writeFileSync(at('two.tgz'), chart(`${head}version: 1.0.0\ndescription: other\n`))
    expect(await refusal('--chart', at('one.tgz'), at('two.tgz'))).toContain(
      `--chart ${at('two.tgz')} and --chart ${at('one.tgz')} both have the chart app 1.0.0, with different content`,
    )
  })

  it.each<[string, Buffer, string]>([
    ['text', Buffer.from('hello'), 'is neither gzip nor Zstandard; a chart is'],
    [
      'an archive without Chart.yaml',
      gzipSync(rawTar([{ name: 'app/values.yaml' }])),
      'Chart.yaml is missing in it',
    ],
    ['an archive with two charts', chart(head, { name: 'other/Chart.yaml' }), 'it has two files Chart.yaml'],
    ['a chart without a version', chart(head), 'Chart.yaml has no version, which must be a text'],
    [
      'a chart with a list as its version',
      chart(`${head}version: [1]\n`),
      'Chart.yaml has no version, which must be a text',
    ],
    ['a chart with a bad version', chart(`${head}version: latest\n`), 'is not a semantic version'],
    [
      'a chart with a version that is longer than a tag',
      chart(`${head}version: 1.0.0-${'a'.repeat(130)}\n`),
      'has a version of 136 characters',
    ],
    [
      'a chart with a path as its name',
      chart('apiVersion: v2\nname: a/../b\nversion: 1.0.0\n'),
      'it must consist of letters',
    ],
    ['broken YAML', chart('a: [\n'), 'is not valid YAML'],
    ['a list', chart('- a\n'), 'is not a list of fields'],
    ['a chart that is cut off', chart(`${head}version: 1.0.0\n`).subarray(0, -20), 'ends too early'],
    ['a chart with a member outside', chart(head, { name: '../x' }), 'points out of the archive'],
    [
      'a chart with a link',
      chart(head, { name: 'app/x', kind: '2', linkName: '/etc/passwd' }),
      'a chart holds regular files and folders only',
    ],
    ['a large Chart.yaml', chart(`${head}# ${'x'.repeat(2 ** 20)}`), 'are allowed'],
  ])('%s is refused with option and reason', async (_what, bytes, words) => {
    writeFileSync(at('app.tgz'), bytes)
    const message = await refusal('--chart', at('app.tgz'))
    expect(message).toContain(`--chart ${at('app.tgz')}`)
    expect(message).toContain(words)
  })
})

describe('a file in a bundle', () => {
  it('is found by its name', async () => {
    writeFileSync(at('x'), 'content')
    await ctl.built('--file', `conf/a b.txt=${at('x')}`, '--output', at('b.tar'))
    expect((await ctl.inspected(at('b.tar'))).entries).toMatchObject([
      {
        kind: 'file',
        title: 'conf/a b.txt',
        files: [{ title: 'conf/a b.txt', digest: digestOf('content') }],
      },
    ])
  })

  it('is refused without a name, with a name out of its folder, a missing file, a folder, and a name given twice', async () => {
    writeFileSync(at('x'), 'x')
    writeFileSync(at('y'), 'y')
    expect(await refusal('--file', at('x'))).toContain('must be written as NAME=FILE')
    expect(await refusal('--file', `../a=${at('x')}`)).toContain('must be a relative path without ..')
    expect(await refusal('--file', `/a=${at('x')}`)).toContain('must be a relative path without ..')
    expect(await refusal('--file', `a=${at('no')}`)).toContain('cannot be read: no such file or directory')
    expect(await refusal('--file', `a=${ctl.home}`)).toContain('it is not a regular file')
    expect(await refusal('--file', `a=${at('x')}`, `a=${at('y')}`)).toContain('both have the file a')
  })
})

describe('programs in a bundle', () => {
  /** The start of an ELF file for a machine of elf(5). */
  const elf = (machine: number) => {
    const start = Buffer.alloc(64)
    start.write('\x7fELF\x02\x01\x01', 'latin1')
    start.writeUInt16LE(machine, 18)
    return start
  }
  const [amd64, arm64] = [elf(62), elf(183)]

  function writePrograms(folder: string): void {
    for (const [architecture, bytes] of [
      ['amd64', amd64],
      ['arm64', arm64],
    ] as const) {
      mkdirSync(at(`${folder}/${architecture}/bin`), { recursive: true })
      writeFileSync(at(`${folder}/${architecture}/bin/tool`), bytes)
      chmodSync(at(`${folder}/${architecture}/bin/tool`), 0o755)
    }
    writeFileSync(at(`${folder}/tool.service`), '[Unit]\n')
  }

  it('are an artifact for each architecture below one index, a layer for each file, with name and mode', async () => {
    writePrograms('tools')
    await ctl.built('--programs', `tool=1.2+k3s1:${at('tools')}`, '--output', at('b.tar'))
    const { entries, architectures } = await ctl.inspected(at('b.tar'))
    expect(architectures).toEqual(['amd64', 'arm64'])
    expect(entries).toMatchObject([{ kind: 'program', title: 'tool', version: '1.2+k3s1' }])
    const index = documentOf('b.tar', entries[0]!.digest)
    expect(index.manifests.map(({ platform }) => platform.architecture)).toEqual(['amd64', 'arm64'])
    const { layers } = documentOf('b.tar', index.manifests[1]!.digest)
    expect(layers.map(({ digest, annotations }) => [digest, annotations])).toEqual([
      [digestOf(arm64), { 'org.opencontainers.image.title': 'bin/tool', 'io.edgehostd.file.mode': '0755' }],
      [
        digestOf('[Unit]\n'),
        { 'org.opencontainers.image.title': 'tool.service', 'io.edgehostd.file.mode': '0644' },
      ],
    ])
  })

  it('give the same bytes whatever the folder and the rest of the mode', async () => {
    writePrograms('tools')
    cpSync(at('tools'), at('copy'), { recursive: true })
    chmodSync(at('copy/tool.service'), 0o600)
    chmodSync(at('copy/amd64/bin/tool'), 0o700)
    await ctl.built('--programs', `tool=1:${at('tools')}`, '--output', at('a.tar'))
    await ctl.built('--programs', `tool=1:${at('copy')}/`, '--output', at('b.tar'))
    expect(readFileSync(at('b.tar')).equals(readFileSync(at('a.tar')))).toBe(true)
  })

  it('without folders of architectures are one artifact for all', async () => {
    mkdirSync(at('scripts'))
    writeFileSync(at('scripts/run.sh'), '#!/bin/sh\n')
    await ctl.built('--programs', `scripts=1:${at('scripts')}`, '--output', at('b.tar'))
    expect((await ctl.inspected(at('b.tar'))).entries).toMatchObject([
      { kind: 'program', title: 'scripts', version: '1', platforms: [], files: [{ title: 'run.sh' }] },
    ])
  })

  it.each<[string, (folder: string) => void, string]>([
    [
      'a program in the folder of another architecture',
      (folder) => writeFileSync(`${folder}/amd64/x`, arm64),
      'amd64/x is a program for arm64, but is in the folder amd64',
    ],
    [
      'a program for all architectures',
      (folder) => writeFileSync(`${folder}/x`, amd64),
      'x is a program for amd64; put it into a folder amd64 of its own',
    ],
    [
      'a program of an unknown machine',
      (folder) => writeFileSync(`${folder}/amd64/x`, elf(9_999)),
      'is a program for machine 9999',
    ],
    [
      'a link',
      (folder) => symlinkSync('bin/tool', `${folder}/amd64/x`),
      'amd64/x is a link; only files and folders can be packed',
    ],
    ['a pipe', (folder) => void execFileSync('mkfifo', [`${folder}/amd64/x`]), 'is a special file'],
    [
      'a file for all and for one architecture',
      (folder) => writeFileSync(`${folder}/amd64/tool.service`, ''),
      'for all architectures and for amd64; remove one of them',
    ],
    [
      'an empty folder of an architecture',
      (folder) => mkdirSync(`${folder}/s390x`),
      'the folder s390x has no files',
    ],
  ])('with %s are refused, naming the file', async (_what, change, words) => {
    writePrograms('tools')
    change(at('tools'))
    expect(await refusal('--programs', `tool=1:${at('tools')}`)).toContain(words)
  })

  it('are refused when written in another form, missing, empty, or with the bundle in their folder', async () => {
    writePrograms('tools')
    mkdirSync(at('none'))
    const form = 'must be written as NAME=VERSION:DIR'
    expect(await refusal('--programs', at('tools'))).toContain(form)
    expect(await refusal('--programs', `tool=${at('tools')}`)).toContain(form)
    expect(await refusal('--programs', `tool=a b:${at('tools')}`)).toContain('must consist of letters')
    expect(await refusal('--programs', `tool=1:${at('missing')}`)).toContain(
      'cannot be read: no such file or directory',
    )
    expect(await refusal('--programs', `tool=1:${at('none')}`)).toContain('has no files')
    const { stderr } = await ctl.build(
      '--programs',
      `tool=1:${at('tools')}`,
      '--output',
      at('tools/amd64/b.tar'),
    )
    expect(stderr).toContain('is in the folder of --programs')
  })
})
