import type { Declaration } from '../root/room.ts'
import { Audit } from './config.ts'

/** The audit trail. */
export const about = {
  config: { audit: Audit },
  families: {
    edgehostd_audit_unwritten_records_total: {
      type: 'counter',
      help: 'Audit records that are only in the journal, since they could not be written to the disk.',
    },
  },
  tags: { audits: 'The audit trail, and its verification.' },
  // The verification reads every record.
  support: [
    {
      name: 'audit-head.json',
      path: '/v1/edge-mgmt/edgehosts/current/audits/verify',
      timeoutMs: 300_000,
    },
  ],
} as const satisfies Declaration
