import { defineErrors } from '../errors/define-errors.ts'

/** Errors of uploads. */
export const uploadErrors = defineErrors({
  SignatureMissing: {
    status: 400,
    meaning: 'The host has a public key for uploads, and this upload came without a signature.',
    action:
      'Sign the file with openssl dgst -sha256 -sign KEY -out FILE.sig FILE and send FILE.sig as the part signature.',
  },
  SignatureInvalid: {
    status: 400,
    meaning:
      "The signature does not match the uploaded file and the host's public key; the upload was discarded.",
    action:
      'Sign exactly the file that is sent, SHA-256, with the private key that belongs to the public key of GET /v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key.',
  },
  TooManyUploads: {
    status: 503,
    meaning:
      'The upload has waited for others as long as it may: of one user, and of all, a bounded number is not finished at a time.',
    action:
      'Wait for the seconds in Retry-After, or cancel another upload, and send it again. details.reason says what it waited for.',
  },
})
