import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'
import { dockerArchive } from '../../support/docker-archives.ts'
import { digestOf, layoutMembers, layoutOf, writeExampleLayout } from '../../support/layout-files.ts'
import { compressions, rawTar, type RawMember } from '../../support/tar-bytes.ts'

let ctl: ContentCtl
const at = (name: string) => ctl.at(name)
beforeEach(() => {
  ctl = createContentCtl()
})
afterEach(() => ctl.remove())

const plain = (bytes: Buffer) => bytes
const forms = [
  ['plain', plain],
  ['gzip', compressions.gzip],
  ['zstd', compressions.zstd],
  ['zstd with a skippable frame, as pzstd writes it,', compressions.pzstd],
] as const

/** Names with tags of the images in a bundle. */
const namesOf = async (file: string) =>
  (await ctl.inspected(at(file))).entries.map(({ name, tag }) => `${name}:${tag}`)

describe('an OCI archive', () => {
  it.each(forms)('that is %s gives the bundle that its layout gives', async (_form, compress) => {
    const layout = writeExampleLayout(at('layout'))
    writeFileSync(at('images.tar'), compress(rawTar(layoutMembers(layout))))
    await ctl.built('--oci-layout', at('layout'), '--output', at('a.tar'))
    await ctl.built('--image-archive', at('images.tar'), '--output', at('b.tar'))
    expect(readFileSync(at('b.tar')).equals(readFileSync(at('a.tar')))).toBe(true)
    expect(readdirSync(ctl.home).filter((name) => name.includes('.part'))).toEqual([])
  })

  it('with the files of Docker 25 beside the layout is read as a layout', async () => {
    const layout = layoutOf({ layers: ['a'], name: 'a:1' })
    const members = [
      ...layoutMembers(layout),
      { name: 'manifest.json', content: '[]' },
      { name: 'repositories', content: '{}' },
    ]
    writeFileSync(at('images.tar'), rawTar(members))
    const { exitCode, stderr } = await ctl.build('--image-archive', at('images.tar'), '--output', at('b.tar'))
    expect({ exitCode, hasNote: stderr.includes('no registry digest') }).toEqual({
      exitCode: 0,
      hasNote: false,
    })
    expect(await namesOf('b.tar')).toEqual(['docker.io/library/a:1'])
  })

  it('does not follow a link to a blob', async () => {
    const layout = layoutOf({ layers: ['a', 'b'], name: 'a:1' })
    const members = layoutMembers(layout).map((member): RawMember =>
      member.content.toString() === 'b' ? { name: member.name, kind: '2', linkName: '/etc/passwd' } : member,
    )
    writeFileSync(at('images.tar'), rawTar(members))
    const { exitCode, stderr } = await ctl.build('--image-archive', at('images.tar'), '--output', at('b.tar'))
    expect(exitCode).toBe(1)
    expect(stderr).toContain('is not in the bundle')
  })
})

describe('an archive of an old docker save', () => {
  const images = [
    { tags: ['busybox:1.36', 'acme.example:5000/tools/busybox:latest'], layers: ['base layer', 'one'] },
    { tags: ['quay.io/acme/two:2'], layers: ['base layer', 'two'], architecture: 'arm64' },
    { tags: null, layers: ['three'] },
  ]

  it.each(forms)(
    'that is %s becomes OCI images with its layers, and the command says that they have no registry digest',
    async (_form, compress) => {
      writeFileSync(at('old.tar'), compress(dockerArchive(images)))
      const { exitCode, stderr } = await ctl.build('--image-archive', at('old.tar'), '--output', at('b.tar'))
      expect(exitCode, stderr).toBe(0)
      expect(stderr).toContain('busybox:1.36 has no registry digest')
      const { entries, sharedBytes } = await ctl.inspected(at('b.tar'))
      expect(entries.map(({ name, tag }) => `${name}:${tag}`)).toEqual([
        'undefined:undefined',
        'acme.example:5000/tools/busybox:latest',
        'docker.io/library/busybox:1.36',
        'quay.io/acme/two:2',
      ])
      expect(entries.map(({ platforms }) => platforms[0]?.architecture)).toEqual([
        'amd64',
        'amd64',
        'amd64',
        'arm64',
      ])
      expect(entries[1]?.digest).toBe(entries[2]?.digest)
      expect(sharedBytes).toBe('base layer'.length)
      const blobs = execFileSync('tar', ['-tf', at('b.tar')], { encoding: 'utf8' })
      for (const layer of ['base layer', 'one', 'two', 'three'])
        expect(blobs).toContain(digestOf(layer).slice(7))
    },
  )

  it('gives the same bytes each time, compressed or not', async () => {
    writeFileSync(at('old.tar'), dockerArchive(images))
    writeFileSync(at('other.tar'), compressions.zstd(dockerArchive(images)))
    await ctl.built('--image-archive', at('old.tar'), '--output', at('a.tar.gz'))
    await ctl.built('--image-archive', at('other.tar'), '--output', at('b.tar.gz'))
    expect(readFileSync(at('b.tar.gz')).equals(readFileSync(at('a.tar.gz')))).toBe(true)
  })

  it('may have hard links and compressed layers', async () => {
    const bytes = dockerArchive(images.slice(0, 2), (members) => {
      for (const [index, member] of members.entries()) {
        if (member.kind === '2')
          members[index] = { ...member, kind: '1', linkName: member.linkName!.replace('../', '') }
        else if (member.content === 'one') members[index] = { ...member, content: gzipSync('one') }
      }
    })
    writeFileSync(at('old.tar'), bytes)
    await ctl.built('--image-archive', at('old.tar'), '--output', at('b.tar'))
    const blobs = execFileSync('tar', ['-tf', at('b.tar')], { encoding: 'utf8' })
    expect(blobs).toContain(digestOf(gzipSync('one')).slice(7))
    const manifest = (await ctl.inspected(at('b.tar'))).entries.find(({ tag }) => tag === '1.36')!
    const text = execFileSync('tar', ['-xOf', at('b.tar'), `blobs/${manifest.digest.replace(':', '/')}`], {
      encoding: 'utf8',
    })
    expect(
      (JSON.parse(text) as { layers: { mediaType: string }[] }).layers.map(({ mediaType }) => mediaType),
    ).toEqual(['application/vnd.oci.image.layer.v1.tar', 'application/vnd.oci.image.layer.v1.tar+gzip'])
  })

  const replace = (
    wanted: (member: RawMember) => boolean,
    change: (member: RawMember) => RawMember | undefined,
  ) =>
    dockerArchive(images, (members) => {
      for (const [index, member] of [...members.entries()].reverse()) {
        if (!wanted(member)) continue
        const changed = change(member)
        members.splice(index, 1, ...(changed ? [changed] : []))
      }
    })
  const isLink = ({ kind }: RawMember) => kind === '2'
  const isConfig = ({ name }: RawMember) => /^[0-9a-f]{64}\.json$/.test(String(name))
  const isManifest = ({ name }: RawMember) => name === 'manifest.json'

  it.each<[string, Buffer, string]>([
    [
      'a link out of the archive',
      replace(isLink, (member) => ({ ...member, linkName: '../../../etc/passwd' })),
      'is not in the archive',
    ],
    [
      'a link to an absolute path',
      replace(isLink, (member) => ({ ...member, linkName: '/etc/passwd' })),
      'is not in the archive',
    ],
    [
      'a link to itself',
      replace(isLink, (member) => ({ ...member, linkName: 'layer.tar' })),
      'is a link that leads in a circle',
    ],
    [
      'a link to a folder',
      replace(isLink, (member) => ({ ...member, linkName: '.' })),
      'is a folder; it must be a file',
    ],
    [
      'a layer that was altered',
      replace(
        ({ content }) => content === 'one',
        (member) => ({ ...member, content: 'ENO' }),
      ),
      'is damaged',
    ],
    [
      'a compressed layer of other content',
      replace(
        ({ content }) => content === 'one',
        (member) => ({ ...member, content: gzipSync('ENO') }),
      ),
      'is damaged: its content is not sha256:',
    ],
    [
      'a layer that is missing',
      replace(
        ({ content }) => content === 'one',
        () => undefined,
      ),
      'which its manifest.json names, is not in the archive',
    ],
    [
      'a configuration that was altered',
      replace(isConfig, (member) => ({ ...member, content: `${String(member.content)} ` })),
      'is damaged: its content is sha256:',
    ],
    [
      'a manifest.json that is no JSON',
      replace(isManifest, (member) => ({ ...member, content: '[' })),
      'manifest.json is not valid JSON',
    ],
    [
      'a manifest.json without images',
      replace(isManifest, (member) => ({ ...member, content: '[]' })),
      'manifest.json lists no images',
    ],
    [
      'a manifest.json with a bad tag',
      replace(isManifest, (member) => ({
        ...member,
        content: String(member.content).replace('busybox:1.36', 'Bad Name'),
      })),
      'in manifest.json has',
    ],
    [
      'a manifest.json with a layer too few',
      replace(isManifest, (member) => ({
        ...member,
        content: String(member.content).replace(/"Layers":\["[^"]*",/, '"Layers":['),
      })),
      'gives',
    ],
    [
      'a path in manifest.json that leaves the archive',
      replace(isManifest, (member) => ({
        ...member,
        content: String(member.content).replace(/"Config":"[^"]*"/, '"Config":"../../etc/passwd"'),
      })),
      'is not in the archive',
    ],
    ['a member outside', rawTar([{ name: '../x' }]), 'points out of the archive'],
    ['nothing of an image', rawTar([{ name: 'x' }]), 'it has neither oci-layout nor manifest.json'],
    ['a layout in a folder', rawTar([{ name: 'i/oci-layout', content: '{}' }]), 'tar -C i -cf FILE'],
    [
      'the form of docker before 1.10',
      rawTar([{ name: 'repositories', content: '{}' }]),
      'before version 1.10',
    ],
    ['no end', dockerArchive(images).subarray(0, -1_024), 'ends too early'],
  ])('with %s is refused with option and reason', async (_what, bytes, words) => {
    writeFileSync(at('old.tar'), bytes)
    const { exitCode, stderr } = await ctl.build('--image-archive', at('old.tar'), '--output', at('b.tar'))
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`--image-archive ${at('old.tar')}`)
    expect(stderr).toContain(words)
    expect(readdirSync(ctl.home)).not.toContain('b.tar')
  })

  it('that is also the output, a folder, or missing is refused', async () => {
    writeFileSync(at('old.tar'), dockerArchive(images))
    mkdirSync(at('folder'))
    const refusal = async (archive: string, output: string) =>
      (await ctl.build('--image-archive', at(archive), '--output', at(output))).stderr
    expect(await refusal('old.tar', 'old.tar')).toContain('is also the file of --image-archive')
    expect(await refusal('folder', 'b.tar')).toContain(
      'cannot be read: it is a folder; for the folder of a layout use',
    )
    expect(await refusal('none', 'b.tar')).toContain('cannot be read: no such file or directory')
  })
})
