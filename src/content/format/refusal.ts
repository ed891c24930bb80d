import { AppError } from '../../errors/app-error.ts'
import { escapeInvisible } from '../../base/printable.ts'
import { bundleErrors } from '../codes.ts'

const MiB = 2 ** 20

/** Limits of bundles, whose authors are not trusted. Layers have no limit but the disk. */
export interface BundleLimits {
  /** Bytes of index.json; an entry with its annotations takes about 500. */
  readonly indexFileBytes: number
  /** Bytes of an index or a manifest. Registries allow 4 MiB. */
  readonly documentBytes: number
  /** Bytes of an image configuration or Chart.yaml that is read; one that is larger is stored unread. */
  readonly configBytes: number
  /** Descriptors of one index or manifest. */
  readonly descriptors: number
  /** Indexes and manifests of a bundle. */
  readonly documents: number
  /** Blobs of a bundle. */
  readonly blobs: number
  /** Indexes within indexes below index.json. */
  readonly depth: number
  /** Platforms, files and blobs of all entries together. Entries may share them, so it bounds the work and the record. */
  readonly steps: number
}

export const bundleLimits: BundleLimits = {
  indexFileBytes: 16 * MiB,
  documentBytes: 8 * MiB,
  configBytes: 4 * MiB,
  descriptors: 50_000,
  documents: 50_000,
  blobs: 500_000,
  depth: 4,
  steps: 2_000_000,
}

/** Why a bundle is refused; sent to the client as `details.reason`. */
export const reasons = {
  JsonInvalid: 'BundleInvalid',
  FieldMissing: 'BundleInvalid',
  FieldInvalid: 'BundleInvalid',
  DigestUnsupported: 'BundleInvalid',
  MediaTypeDiffers: 'BundleInvalid',
  ManifestOutdated: 'BundleInvalid',
  SizeDiffers: 'BundleInvalid',
  LayersDiffer: 'BundleInvalid',
  FileNameInvalid: 'BundleInvalid',
  DefinitionInvalid: 'BundleInvalid',
  DefinitionTwice: 'BundleInvalid',
  BundleEmpty: 'BundleInvalid',
  BlobMissing: 'BundleIncomplete',
  NothingCarried: 'BundleIncomplete',
  IndexTooLarge: 'BundleTooLarge',
  ManifestTooLarge: 'BundleTooLarge',
  TooManyDescriptors: 'BundleTooLarge',
  TooManyBlobs: 'BundleTooLarge',
  TooDeep: 'BundleTooLarge',
} as const satisfies Record<string, keyof typeof bundleErrors>

export type BundleReason = keyof typeof reasons

const shownCharacters = 300

/**
 * The refusal of a bundle, 400 with one of three codes.
 * @param place the file or blob, with the field: `index.json#manifests[3].size`, `sha256:…#layers[0].digest`
 * @param what the rest of the sentence, with what to do about it
 */
export function refuseBundle(
  reason: BundleReason,
  place: string,
  what: string,
  details: Readonly<Record<string, unknown>> = {},
): AppError {
  const shown = showText(place)
  return new AppError(bundleErrors[reasons[reason]], `${shown} ${what}`, {
    details: { reason, place: shown, ...details },
  })
}

/** Text of a bundle for use in a message: without invisible characters and cut to a limit. */
export const showText = (text: string): string =>
  escapeInvisible(text.length > shownCharacters ? `${text.slice(0, shownCharacters - 3)}...` : text)
