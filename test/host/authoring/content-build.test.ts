import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { execa } from 'execa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'
import {
  addImage,
  blobPath,
  digestOf,
  layoutOf,
  writeExampleLayout,
  writeLayoutFolder,
} from '../../support/layout-files.ts'
import { createLayout, type TestLayout } from '../../support/layouts.ts'
import { compressions, exportedProfile, rawTar, signedMembers } from '../../support/tar-bytes.ts'
import { noise } from '../../support/random.ts'

let ctl: ContentCtl
let layout: TestLayout
const at = (name: string) => ctl.at(name)

beforeEach(() => {
  ctl = createContentCtl()
  layout = createLayout()
})
afterEach(() => ctl.remove())

const members = (file: string) => execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n')

describe('a bundle of OCI layouts', () => {
  it.each(['b.tar', 'b.tar.gz', 'b.tgz', 'b.tar.zst'])(
    '%s has every image once, index and manifests first',
    async (name) => {
      layout = writeExampleLayout(at('layout'))
      const { indexDigest } = await ctl.built('--oci-layout', at('layout'), '--output', at(name))
      const found = await ctl.inspected(at(name))
      expect(found.indexDigest).toBe(indexDigest)
      expect(found.entries.map(({ name: image, tag }) => `${String(image)}:${String(tag)}`)).toEqual(
        ['docker.io/library/one:1', 'ghcr.io/acme/many:3', 'quay.io/acme/two:2'].sort(),
      )
      expect(found.sharedBytes).toBe(5_000)
      expect(found.entries.flatMap(({ platforms }) => platforms as object[])).toContainEqual(
        expect.objectContaining({ architecture: 'arm64', isCarried: false }),
      )
      const listed = members(at(name))
      expect(listed.slice(0, 2)).toEqual(['oci-layout', 'index.json'])
      expect(new Set(listed).size).toBe(listed.length)
      const isManifest = listed.slice(2).map((path) => {
        const content = layout.blobs.get(path.slice('blobs/sha256/'.length))!.toString()
        return /"(?:layers|manifests)":/.test(content)
      })
      expect(isManifest.lastIndexOf(true)).toBeLessThan(isManifest.indexOf(false))
    },
  )

  it('without a name the bundle is a .tar, or a .tar.zst where that is much smaller, and the other form is said', async () => {
    writeFileSync(at('noise'), noise(2_000_000))
    writeFileSync(at('text'), 'the same line again\n'.repeat(100_000))
    for (const [name, ending, other] of [
      ['noise', '.tar', '.tar.zst'],
      ['text', '.tar.zst', '.tar'],
    ]) {
      const { stdout, stderr, exitCode } = await execa(
        process.execPath,
        [ctl.program, 'content', 'build', '--file', `${name!}=${at(name!)}`, '-o', 'json'],
        { cwd: at('.'), reject: false },
      )
      expect(exitCode, stderr).toBe(0)
      const built = JSON.parse(stdout) as { file: string; indexDigest: string; sizeBytes: number }
      const stem = `bundle-${built.indexDigest.slice(7, 19)}`
      expect(built.file).toBe(`${stem}${ending!}`)
      expect(stderr).toContain(`--output ${stem}${other!}`)
      expect(statSync(at(built.file)).size).toBe(built.sizeBytes)
      expect((await ctl.inspected(at(built.file))).indexDigest).toBe(built.indexDigest)
    }
  })

  it('the same content gives the same bytes, whatever the time zone, umask, locale, folder and order of the options', async () => {
    writeExampleLayout(at('one'))
    writeLayoutFolder(at('two'), layoutOf({ layers: ['x'], name: 'docker.io/library/x:1' }))
    mkdirSync(at('elsewhere'))
    execFileSync('cp', ['-r', at('one'), at('two'), at('elsewhere')])
    // Also with the fields of the descriptors in another order.
    const index = JSON.parse(readFileSync(at('elsewhere/one/index.json'), 'utf8')) as { manifests: object[] }
    const turned = index.manifests.map((each) => Object.fromEntries(Object.entries(each).reverse())).reverse()
    writeFileSync(at('elsewhere/one/index.json'), JSON.stringify({ ...index, manifests: turned }))
    await ctl.built('--oci-layout', at('one'), at('two'), '--output', at('a.tar.zst'))
    const again = await execa(
      'bash',
      [
        '-c',
        'umask 077; exec "$0" "$@"',
        ...[process.execPath, ctl.program, 'content', 'build', '--oci-layout', 'two', '--oci-layout', 'one'],
        ...['--output', 'b.tar.zst'],
      ],
      {
        cwd: at('elsewhere'),
        extendEnv: false,
        env: { PATH: '/usr/bin:/bin', HOME: ctl.home, TZ: 'Asia/Tokyo', LC_ALL: 'tr_TR.UTF-8' },
      },
    )
    expect(again.exitCode).toBe(0)
    expect(digestOf(readFileSync(at('elsewhere/b.tar.zst')))).toBe(digestOf(readFileSync(at('a.tar.zst'))))
    expect(statSync(at('elsewhere/b.tar.zst')).mode & 0o777).toBe(0o600)
  })

  it('equal blobs of several layouts are in the bundle once', async () => {
    const shared = 'shared!'.repeat(10_000)
    writeLayoutFolder(at('one'), layoutOf({ layers: [shared, 'a'], name: 'a:1' }))
    writeLayoutFolder(at('two'), layoutOf({ layers: [shared, 'b'], name: 'b:1' }))
    const { contentBytes } = await ctl.built('--oci-layout', at('one'), at('two'), '--output', at('b.tar'))
    expect(contentBytes).toBeLessThan(80_000)
    expect((await ctl.inspected(at('b.tar'))).sharedBytes).toBe(70_000)
  })
})

describe('content build refuses', () => {
  const refused = async (words: string, ...args: readonly string[]) => {
    const { exitCode, stderr } = await ctl.build(...args)
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain(words)
    expect(
      readdirSync(ctl.home).filter((name) => name.includes('.part') || name.startsWith('b.tar')),
    ).toEqual([])
  }

  it('a folder that is missing, is a file or is no layout, naming option and reason', async () => {
    mkdirSync(at('empty'))
    writeFileSync(at('file'), '')
    await refused(
      `--oci-layout ${at('none')} cannot be read: no such file or directory`,
      '--oci-layout',
      at('none'),
      '--output',
      at('b.tar'),
    )
    await refused(
      'it is not an OCI image layout: oci-layout is missing',
      '--oci-layout',
      at('empty'),
      '--output',
      at('b.tar'),
    )
    writeFileSync(at('empty/manifest.json'), '{}')
    await refused(
      `oci-layout is missing; make one of it: skopeo copy dir:${at('empty')} oci:`,
      '--oci-layout',
      at('empty'),
      '--output',
      at('b.tar'),
    )
    await refused(
      'for an archive of images use --image-archive',
      '--oci-layout',
      at('file'),
      '--output',
      at('b.tar'),
    )
  })

  it.each<[string, string, (path: string) => void]>([
    ['altered', 'is damaged: it is named sha256:', (path) => writeFileSync(path, 'ENO')],
    ['cut off', 'but the blob has 1 bytes', (path) => truncateSync(path, 1)],
    ['missing', 'which is not in the bundle', (path) => rmSync(path)],
    [
      'a folder',
      'is not a regular file',
      (path) => {
        rmSync(path)
        mkdirSync(path)
      },
    ],
  ])('a layout with a layer that is %s', async (_what, words, damage) => {
    layout = writeExampleLayout(at('layout'))
    damage(at(`layout/${blobPath('one')}`))
    await refused(words, '--oci-layout', at('layout'), '--output', at('b.tar'))
  })

  it('a manifest that was altered', async () => {
    const image = addImage(layout, { layers: ['a'], name: 'a:1' })
    layout.list(image)
    writeLayoutFolder(at('layout'), layout)
    const path = at(`layout/blobs/${image.digest.replace(':', '/')}`)
    writeFileSync(
      path,
      readFileSync(path, 'utf8')
        .replace('amd64', 'arm64')
        .replace(/"size":(\d)/, '"size":9'),
    )
    await refused(image.digest, '--oci-layout', at('layout'), '--output', at('b.tar'))
  })

  it('an image that a host would refuse, since it has fewer layers than its configuration says', async () => {
    const rootfs = { type: 'layers', diff_ids: [digestOf('a'), digestOf('b')] }
    layout.list(layout.image({ layers: ['a'], config: { rootfs } }))
    writeLayoutFolder(at('layout'), layout)
    await refused(
      'is an image of 2 layers by its configuration and of 1 by its manifest',
      ...['--oci-layout', at('layout'), '--output', at('b.tar')],
    )
  })

  it('one name for two images, naming both options', async () => {
    writeLayoutFolder(at('one'), layoutOf({ layers: ['a'], name: 'busybox' }))
    writeLayoutFolder(at('two'), layoutOf({ layers: ['b'], name: 'docker.io/library/busybox:latest' }))
    await refused(
      `--oci-layout ${at('two')} and --oci-layout ${at('one')} both have the image docker.io/library/busybox:latest`,
      ...['--oci-layout', at('one'), at('two'), '--output', at('b.tar')],
    )
  })

  it('an output without an archive name, or in a missing folder', async () => {
    layout = writeExampleLayout(at('layout'))
    await refused(
      '--output is b.zip; it must be one of: table, json, yaml, or a file that ends in .tar',
      '--oci-layout',
      at('layout'),
      '--output',
      'b.zip',
    )
    await refused('content build needs something to pack', '--output', at('b.tar'))
    await refused(
      `the folder ${at('no')} is missing`,
      '--oci-layout',
      at('layout'),
      '--output',
      at('no/b.tar'),
    )
  })

  it('a disk that is full, and leaves no file there', async () => {
    writeLayoutFolder(at('layout'), layoutOf({ layers: [noise(1_500_000).toString('latin1')], name: 'a' }))
    mkdirSync(at('small'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', at('small')])
    try {
      await refused(
        `--output ${at('small/b.tar.zst')} cannot be written: no space left on device (ENOSPC)`,
        ...['--oci-layout', at('layout'), '--output', at('small/b.tar.zst')],
      )
      expect(readdirSync(at('small'))).toEqual([])
    } finally {
      execFileSync('umount', [at('small')])
    }
  })

  it('does not replace the bundle that is there when it fails', async () => {
    layout = writeExampleLayout(at('layout'))
    writeFileSync(at('old.tar'), 'old')
    rmSync(at(`layout/${blobPath('one')}`))
    await refused('which is not in the bundle', '--oci-layout', at('layout'), '--output', at('old.tar'))
    expect(readFileSync(at('old.tar'), 'utf8')).toBe('old')
  })
})

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'content build removes its unfinished file at %s',
  async (signal) => {
    const config = layout.put('{}', 'application/vnd.oci.image.config.v1+json')
    const layer = {
      mediaType: 'application/vnd.oci.image.layer.v1.tar',
      digest: digestOf('no such content'),
      size: 2 ** 35,
    }
    const manifest = { schemaVersion: 2, config, layers: [layer] }
    layout.list(layout.putJson(manifest, 'application/vnd.oci.image.manifest.v1+json'))
    writeLayoutFolder(at('layout'), layout)
    writeFileSync(at(`layout/${blobPath('no such content')}`), '')
    truncateSync(at(`layout/${blobPath('no such content')}`), layer.size)
    mkdirSync(at('out'))
    const child = execa(
      process.execPath,
      [ctl.program, 'content', 'build', '--oci-layout', at('layout'), '--output', at('out/b.tar.zst')],
      { extendEnv: false, env: { HOME: ctl.home }, reject: false },
    )
    await expect.poll(() => readdirSync(at('out')), { timeout: 60_000 }).toHaveLength(1)
    child.kill(signal)
    expect((await child).exitCode).toBe(128 + constants.signals[signal])
    expect(readdirSync(at('out'))).toEqual([])
  },
)

describe('the definition of a bundle', () => {
  const archive = (profile: object) =>
    compressions.gzip(rawTar(signedMembers({ 'profiles/u1/profile.json': JSON.stringify(profile) })))

  it('is its first layer, marked in index.json', async () => {
    const packs = [{ name: 'a', layer: 'addon', tag: '1.0', uid: 'a', type: 'spectro', values: 'a: 1\n' }]
    mkdirSync(at('pack'))
    writeFileSync(at('pack/pack.json'), JSON.stringify({ name: 'a', version: '1.0', layer: 'addon' }))
    writeFileSync(at('p.json'), JSON.stringify(exportedProfile('u1', { type: 'add-on', packs })))
    const made = await ctl.run([
      'definition',
      'build',
      '--profile',
      at('p.json'),
      '--pack',
      at('pack'),
      '--output',
      at('d.tgz'),
    ])
    expect(made.exitCode, made.stderr).toBe(0)
    await ctl.built('--definition', at('d.tgz'), '--output', at('b.tar'))
    const found = await ctl.inspected(at('b.tar'))
    expect(found.definition).toEqual({
      digest: digestOf(readFileSync(at('d.tgz'))),
      sizeBytes: statSync(at('d.tgz')).size,
    })
    expect(found.entries).toMatchObject([{ kind: 'definition' }])
    const index = execFileSync('tar', ['-xOf', at('b.tar'), 'index.json'], { encoding: 'utf8' })
    expect(JSON.parse(index)).toMatchObject({
      manifests: [{ annotations: { 'io.image.ref.spectrocloud.type': 'spc' } }],
    })
  })

  it('with an error is refused with its problems', async () => {
    writeFileSync(at('d.tgz'), archive({ metadata: { name: 'x' } }))
    const { exitCode, stdout, stderr } = await ctl.build('--definition', at('d.tgz'), '--output', at('b.tar'))
    expect(exitCode).toBe(1)
    expect(stdout).toContain('profiles/u1')
    expect(stderr).toMatch(/--definition .*d\.tgz has \d+ errors?; nothing was built/)
    expect(readdirSync(ctl.home)).not.toContain('b.tar')
  })

  it('a second one is refused', async () => {
    const { exitCode, stderr } = await ctl.build(
      '--definition',
      at('a.tgz'),
      at('b.tgz'),
      '--output',
      at('b.tar'),
    )
    expect(exitCode).toBe(2)
    expect(stderr).toContain('takes one --definition')
  })
})
