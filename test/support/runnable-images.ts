import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { mediaTypes } from '../../src/content/format/media-types.ts'
import { noise } from './random.ts'
import { sha256, type TestDescriptor, type TestLayout } from './layouts.ts'

/** A layer as an archive of files, which tools unpack. */
export interface RunnableLayer {
  readonly tar: Buffer
  readonly isCompressed?: boolean
}

export interface RunnableImage {
  readonly layers: readonly RunnableLayer[]
  readonly architecture: string
}

/** A root file system with a static busybox, as a layer. */
export const busyboxLayer = (): Buffer =>
  tarOf((root) => {
    mkdirSync(join(root, 'bin'))
    cpSync('/bin/busybox', join(root, 'bin/busybox'))
    symlinkSync('busybox', join(root, 'bin/sh'))
  })

/** A layer with one file whose bytes do not compress, the same for the same name. */
export const noiseLayer = (name: string, sizeBytes: number): Buffer =>
  tarOf((root) => writeFileSync(join(root, name), noise(sizeBytes, name)))

/** Adds an image that a container runtime unpacks and runs; returns its descriptor, with the platform. */
export function addRunnableImage(
  layout: TestLayout,
  { layers, architecture }: RunnableImage,
): TestDescriptor {
  const platform = { architecture, os: 'linux' }
  const config = layout.putJson(
    {
      ...platform,
      config: { Cmd: ['/bin/sh'], Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: layers.map(({ tar }) => `sha256:${sha256(tar)}`) },
    },
    mediaTypes.config,
  )
  const listed = layers.map(({ tar, isCompressed = false }) =>
    isCompressed
      ? layout.put(gzipSync(tar, { level: 1 }), mediaTypes.layerGzip)
      : layout.put(tar, mediaTypes.layer),
  )
  return layout.putJson(
    { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: listed },
    mediaTypes.manifest,
    { platform },
  )
}

/** The same bytes for the same files. */
function tarOf(fill: (root: string) => void): Buffer {
  const root = mkdtempSync(join(tmpdir(), 'edgehostd-layer-'))
  try {
    fill(root)
    const same = [
      '--sort=name',
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--mode=u+rwX,go+rX',
    ]
    return execFileSync('tar', ['-C', root, ...same, '-c', '.'], { maxBuffer: 1_000_000_000 })
  } finally {
    rmSync(root, { recursive: true })
  }
}
