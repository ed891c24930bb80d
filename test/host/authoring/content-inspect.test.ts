import { readdirSync, writeFileSync } from 'node:fs'
import { execa } from 'execa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'
import {
  blobPath,
  digestOf,
  layoutMembers,
  layoutOf,
  writeExampleLayout,
  writeLayoutFolder,
} from '../../support/layout-files.ts'
import { compressions, rawTar } from '../../support/tar-bytes.ts'

let ctl: ContentCtl
const at = (name: string) => ctl.at(name)
beforeEach(() => {
  ctl = createContentCtl()
})
afterEach(() => ctl.remove())

describe('content inspect', () => {
  it('reads a layout in a folder as it reads a bundle, and warns of what its author may not have meant', async () => {
    const layout = layoutOf(
      { layers: ['a'], name: 'a:1' },
      { layers: ['b'], name: 'a:1', architecture: 'arm64' },
      { layers: ['c'] },
    )
    layout.put('a blob that nothing names', 'text/plain')
    writeLayoutFolder(at('layout'), layout)
    const found = await ctl.inspected(at('layout'))
    expect(found.architectures).toEqual(['amd64', 'arm64'])
    expect(found.warnings.map(({ code }) => code).sort()).toEqual([
      ...['ArchitectureMissing', 'ArchitectureMissing', 'ArchitectureMissing', 'BlobsUnnamed'],
      ...['ImageUnnamed', 'NameTwice'],
    ])
    const table = await ctl.run(['content', 'inspect', at('layout')])
    expect(table.stdout).toContain('linux/arm64')
    expect(table.stderr).toContain('warning: the image ')
    expect(table.stderr).toContain('With a name: skopeo copy')
  })

  it('a blob whose content was altered is named, in a folder and in an archive of any compression', async () => {
    const layout = writeExampleLayout(at('layout'))
    writeFileSync(at(`layout/${blobPath('one')}`), 'ENO')
    const altered = layoutMembers(layout).map(({ name, content }) => ({
      name,
      content: content.toString() === 'one' ? 'ENO' : content,
    }))
    for (const [name, bytes] of [
      ['b.tar', rawTar(altered)],
      ['b.tar.gz', compressions.gzip(rawTar(altered))],
      ['b.tar.zst', compressions.zstd(rawTar(altered))],
    ] as const)
      writeFileSync(at(name), bytes)
    for (const path of ['layout', 'b.tar', 'b.tar.gz', 'b.tar.zst']) {
      const { exitCode, stderr } = await ctl.run(['content', 'inspect', at(path)])
      expect(exitCode).toBe(1)
      expect(stderr).toContain(digestOf('one'))
    }
  })

  it.each<[string, Buffer | string, string]>([
    ['cut off', rawTar([{ name: 'oci-layout', content: 'x' }]).subarray(0, 700), 'ends too early'],
    ['no archive', 'hello', 'is neither tar, gzip nor Zstandard'],
    [
      'without index.json',
      rawTar([{ name: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' }]),
      'index.json is missing',
    ],
    [
      'of docker save',
      rawTar([{ name: 'manifest.json', content: '[]' }]),
      'edgehostctl content build --image-archive',
    ],
    [
      'of podman save, which begins with a link',
      rawTar([{ name: 'a/layer.tar', kind: '2', linkName: '../b.tar' }]),
      'edgehostctl content build --image-archive',
    ],
    [
      'one folder with the layout in it',
      rawTar([{ name: 'images/oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' }]),
      'tar -C images -cf FILE',
    ],
    ['empty', Buffer.alloc(0), 'is empty'],
    ['with a member outside', rawTar([{ name: '../x', content: '' }]), 'points out of the archive'],
  ])('an archive that is %s is refused with the reason', async (_what, bytes, words) => {
    writeFileSync(at('b.tar'), bytes)
    const { exitCode, stderr } = await ctl.run(['content', 'inspect', at('b.tar')])
    expect(exitCode).toBe(1)
    expect(stderr).toContain(words)
  })

  it('leaves no files behind', async () => {
    writeExampleLayout(at('layout'))
    await ctl.built('--oci-layout', at('layout'), '--output', at('b.tar'))
    const { stderr, exitCode } = await execa(
      process.execPath,
      [ctl.program, 'content', 'inspect', at('b.tar')],
      {
        extendEnv: false,
        env: { TMPDIR: ctl.home, HOME: ctl.home },
      },
    )
    expect(exitCode, stderr).toBe(0)
    expect(readdirSync(ctl.home).filter((name) => name.startsWith('edgehostctl-content'))).toEqual([])
  })
})
