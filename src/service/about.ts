import type { Declaration } from '../root/room.ts'

/** Declares the room of the daemon itself. */
export const about = {
  attention: {
    NotReady: 'A check fails, so that the daemon cannot do all its work.',
    CheckFails: 'A check fails that keeps the daemon from no work, and needs an operator.',
    StateDiskFull: 'The file system of the state folder is nearly full.',
    AuditsUnwritten: 'Audit records are only in the journal.',
    CertificateEnding: 'The certificate of the API ends soon, or has ended.',
    AttentionUnknown: 'A part of the daemon could not say what it needs.',
  },
  tags: { service: 'The daemon itself.' },
  support: [
    { name: 'status.json', path: '/v1/edge-mgmt/edgehosts/current/status' },
    { name: 'attention.json', path: '/v1/edge-mgmt/edgehosts/current/attention' },
  ],
} as const satisfies Declaration
