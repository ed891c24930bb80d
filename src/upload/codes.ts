import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of uploads. */
export const uploadErrors = defineErrors({
  SignatureMissing: {
    status: 400,
    meaning: 'The host has a public key for uploads, and this upload came without a signature.',
    action:
      'Sign the file with openssl dgst -sha256 -sign KEY -out FILE.sig FILE and send FILE.sig as the part signature.',
  },
  SignatureInvalid: {
    status: 400,
    meaning: "The signature does not fit the uploaded file and the host's public key; nothing was kept.",
    action:
      'Sign the very file that is sent, SHA-256, with the private key of GET /v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key.',
  },
  TooManyUploads: {
    status: 503,
    meaning: 'As many uploads are arriving as the host takes at one time.',
    action: 'Wait for the seconds in Retry-After, or end another upload.',
  },
})
