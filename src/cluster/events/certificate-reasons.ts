import type { Reason } from './reason.ts'

/** Reasons of events about the certificates of Kubernetes; see `reasons.ts`. */
export const certificateReasons = {
  RenewalRequested: {
    ...{ type: 'CertificatesValid', label: 'Renewal requested' },
    meaning: 'An administrator asked for a renewal of the certificates of the control plane.',
  },
  CertificatesRenewed: {
    ...{ type: 'CertificatesValid', label: 'Renewed', status: 'True' },
    meaning:
      'The certificates of the control plane are renewed, by themselves or as an administrator asked for, and its parts run with them.',
  },
  CertificateEnding: {
    ...{ type: 'CertificatesValid', label: 'Ending', status: 'False', severity: 'Warning' },
    meaning:
      'A certificate of Kubernetes ends soon and cannot be renewed by edgehostd, or its file cannot be read; the message names it.',
  },
  CertificatesValid: {
    ...{ type: 'CertificatesValid', label: 'Valid', status: 'True' },
    meaning: 'No certificate ends soon any more that edgehostd cannot renew, and all files can be read.',
  },
  AuthorityEnding: {
    ...{ type: 'AuthoritiesValid', label: 'Ending', status: 'False', severity: 'Warning' },
    meaning:
      'A certificate authority of Kubernetes ends within a year, or has less than a third of a shorter life left. Authorities are not renewed.',
  },
  AuthoritiesValid: {
    ...{ type: 'AuthoritiesValid', label: 'Valid', status: 'True' },
    meaning: 'No certificate authority ends within a year any more.',
  },
} as const satisfies Readonly<Record<string, Reason>>
