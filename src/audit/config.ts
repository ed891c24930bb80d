import { Type, type Static } from 'typebox'
import { positive, strict } from '../config/schema-parts.ts'

/** How long the trail is kept. */
export const Audit = Type.Object(
  {
    retentionDays: positive(1_095, 36_500, 'Records of the audit trail older than this are removed.'),
    limitBytes: positive(
      268_435_456,
      1_099_511_627_776,
      'Disk that the audit trail may take; the oldest records are removed beyond.',
    ),
  },
  strict,
)

/** What an administrator may choose; the section `audit`. */
export type RetentionLimits = Static<typeof Audit>
