import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'
import { addImage, digestOf, layoutOf, writeLayoutFolder } from '../../support/layout-files.ts'
import { createLayout } from '../../support/layouts.ts'
import { rawTar } from '../../support/tar-bytes.ts'

const hasSkopeo = (() => {
  try {
    execFileSync('skopeo', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

let ctl: ContentCtl
const at = (name: string) => ctl.at(name)
const skopeo = (...args: readonly string[]) =>
  execFileSync('skopeo', [...args], { stdio: ['ignore', 'pipe', 'pipe'] })
const copy = (from: string, to: string) => skopeo('--insecure-policy', 'copy', from, to)
/** A layer that is a file system, since skopeo looks into it. */
const layer = (text: string) => rawTar([{ name: 'file', content: text }]).toString('latin1')

// Needs Debian's package skopeo; the suite does not install it.
describe.skipIf(!hasSkopeo)('skopeo', () => {
  beforeEach(() => {
    ctl = createContentCtl()
  })
  afterEach(() => ctl.remove())

  it('reads an image of a bundle, with the digest that the image had', async () => {
    const layout = createLayout()
    const index = layout.index([addImage(layout, { layers: [layer('a')] })])
    layout.list(index, { 'org.opencontainers.image.ref.name': 'ghcr.io/acme/many:3' })
    writeLayoutFolder(at('layout'), layout)
    await ctl.built('--oci-layout', at('layout'), '--output', at('b.tar'))
    expect(digestOf(skopeo('inspect', '--raw', `oci-archive:${at('b.tar')}:ghcr.io/acme/many:3`))).toBe(
      index.digest,
    )
    copy(`oci-archive:${at('b.tar')}:ghcr.io/acme/many:3`, `dir:${at('copied')}`)
  })

  it('writes archives that a bundle is made of', async () => {
    writeLayoutFolder(at('layout'), layoutOf({ layers: [layer('a'), layer('b')], name: 'a:1' }))
    copy(`oci:${at('layout')}`, `oci-archive:${at('oci.tar')}:quay.io/acme/oci:1`)
    copy(`oci:${at('layout')}`, `docker-archive:${at('docker.tar')}:quay.io/acme/docker:2`)
    const { exitCode, stderr } = await ctl.build(
      ...['--image-archive', at('oci.tar'), at('docker.tar'), '--output', at('b.tar.zst')],
    )
    expect(exitCode, stderr).toBe(0)
    expect(stderr).toContain('quay.io/acme/docker:2 has no registry digest')
    expect(stderr).not.toContain('quay.io/acme/oci:1 has no registry digest')
    const { entries } = await ctl.inspected(at('b.tar.zst'))
    expect(entries.map(({ name, tag }) => `${name}:${tag}`)).toEqual([
      'quay.io/acme/docker:2',
      'quay.io/acme/oci:1',
    ])
    mkdirSync(at('unpacked'))
    execFileSync('tar', ['--zstd', '-xf', at('b.tar.zst'), '-C', at('unpacked')])
    copy(`oci:${at('unpacked')}:quay.io/acme/docker:2`, `dir:${at('copied')}`)
  })

  it('reads the manifest of a chart by the name that it has in the bundle', async () => {
    writeLayoutFolder(at('layout'), layoutOf({ layers: [layer('a')], name: 'a:1' }))
    const chart = rawTar([{ name: 'app/Chart.yaml', content: 'apiVersion: v2\nname: app\nversion: 1.2.3\n' }])
    writeFileSync(at('app.tgz'), gzipSync(chart))
    await ctl.built('--chart', at('app.tgz'), '--oci-layout', at('layout'), '--output', at('b.tar'))
    const shown = skopeo('inspect', '--raw', `oci-archive:${at('b.tar')}:app-1.2.3`).toString()
    expect(JSON.parse(shown)).toMatchObject({
      config: { mediaType: 'application/vnd.cncf.helm.config.v1+json' },
    })
  })
})
