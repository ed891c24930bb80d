import { AppError } from '../../errors/app-error.ts'
import { escapeInvisible } from '../../base/printable.ts'
import { bundleErrors } from './codes.ts'

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
