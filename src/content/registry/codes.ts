import { defineErrors } from '../../errors/define-errors.ts'

/** Errors of the registry, in the words of the OCI distribution specification, which writes them BLOB_UNKNOWN. */
export const registryErrors = defineErrors({
  BlobUnknown: {
    status: 404,
    meaning: 'No bundle of this host has the blob, or it is damaged on the disk; the message says which.',
    action: 'Upload a bundle that has it.',
  },
  ManifestUnknown: {
    status: 404,
    meaning: 'The host has the image, chart or artifact, but not with this tag, or not with this digest.',
    action: 'See edgehostctl content list, or upload a bundle that has it.',
  },
  NameUnknown: {
    status: 404,
    meaning: 'No bundle of this host has an image, chart or artifact of this name.',
    action: 'See edgehostctl content list, or upload a bundle that has it.',
  },
  NameInvalid: {
    status: 400,
    meaning: 'The name in the path is not the name of a repository.',
    action: 'Correct the name: small letters and digits, separated by /, ., _ and -.',
  },
  DigestInvalid: {
    status: 400,
    meaning: 'The digest in the path is not one.',
    action: 'Correct the digest: sha256: and 64 hexadecimal digits in lower case.',
  },
  PaginationNumberInvalid: {
    status: 400,
    meaning: 'The parameter n of a list is not a whole number.',
    action: 'Correct n, or leave it out.',
  },
  RangeUnsatisfiable: {
    status: 416,
    meaning: 'The range has no byte of the blob; the header Content-Range says how large that is.',
    action: 'Ask for a range within the blob.',
  },
})
