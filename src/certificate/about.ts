import type { Declaration } from '../root/room.ts'

/** The key pair of this host. Its settings are in the section `api`, whose port uses it. */
export const about = {
  pairs: [['api.tls.certificateFile', 'api.tls.keyFile']],
  checkReferencedFiles: async (check) => (await import('./check-own-pair.ts')).checkOwnPair(check),
  families: {
    edgehostd_certificate_expiry_timestamp_seconds: {
      type: 'gauge',
      help: 'End of the certificate that is in use, seconds since 1970.',
    },
  },
} as const satisfies Declaration
