import type { Declaration } from '../room.ts'
import { Audit } from './config.ts'

/** Who did what, when. */
export const about = {
  config: { audit: Audit },
  families: {
    edgehostd_audit_unwritten_records_total: {
      type: 'counter',
      help: 'Audit records that only the journal has, since the disk did not take them.',
    },
  },
  tags: { audits: 'Who did what on this host, and whether the trail of it is whole.' },
  // The host looks at every record.
  support: [
    {
      name: 'audit-head.json',
      path: '/v1/edge-mgmt/edgehosts/current/audits/verify',
      timeoutMs: 300_000,
    },
  ],
} as const satisfies Declaration
