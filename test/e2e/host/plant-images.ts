import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { writeLayoutFolder } from '../../support/layout-files.ts'
import { createLayout, type TestDescriptor, type TestLayout } from '../../support/layouts.ts'
import { addRunnableImage, busyboxLayer, noiseLayer } from '../../support/runnable-images.ts'

const MB = 1_000_000
/** Of this machine, so that its tools pull images for it. */
export const machineArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64'
/** Of what no image is carried for. */
export const absentArchitecture = machineArchitecture === 'arm64' ? 'amd64' : 'arm64'

/** Descriptors of images that Debian's tools pull and unpack. */
export interface PlantImages {
  /** `docker.io/library/busybox:1.35`: an index of `here`, for this machine, and of a platform that is not carried. */
  readonly busybox: TestDescriptor
  readonly here: TestDescriptor
  /** `registry.example:5000/plant/large:1`, 200 MB. */
  readonly large: TestDescriptor
  /** Its largest layer, 120 MB. */
  readonly largeLayer: TestDescriptor
  /** `quay.example/plant/small:2`. */
  readonly small: TestDescriptor
  /** Its layer, 1 MB. */
  readonly smallLayer: TestDescriptor
}

/** Writes a layout with these images. */
export function writePlantImages(folder: string): PlantImages {
  const layout = createLayout()
  const architecture = machineArchitecture
  const base = { tar: busyboxLayer(), isCompressed: true }
  const tars = { large: noiseLayer('large', 120 * MB), small: noiseLayer('small', MB) }
  const here = addRunnableImage(layout, { layers: [base], architecture })
  const images = {
    here,
    busybox: layout.index([here, withoutBlobs(layout, absentArchitecture)]),
    large: addRunnableImage(layout, {
      layers: [base, { tar: tars.large }, { tar: noiseLayer('other', 76 * MB) }],
      architecture,
    }),
    small: addRunnableImage(layout, { layers: [{ tar: tars.small }], architecture }),
    largeLayer: layout.put(tars.large, mediaTypes.layer),
    smallLayer: layout.put(tars.small, mediaTypes.layer),
  }
  for (const [descriptor, name] of [
    [images.busybox, 'busybox:1.35'],
    [images.large, 'registry.example:5000/plant/large:1'],
    [images.small, 'quay.example/plant/small:2'],
  ] as const)
    layout.list(descriptor, { 'io.containerd.image.name': name })
  writeLayoutFolder(folder, layout)
  return images
}

/** The descriptor of an image that the layout does not carry. */
function withoutBlobs(layout: TestLayout, architecture: string): TestDescriptor {
  const held = new Set(layout.blobs.keys())
  const descriptor = addRunnableImage(layout, {
    layers: [{ tar: noiseLayer(architecture, 1_000) }],
    architecture,
  })
  for (const hex of layout.blobs.keys()) if (!held.has(hex)) layout.blobs.delete(hex)
  return descriptor
}
