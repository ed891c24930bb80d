import { Type, type Static } from 'typebox'
import { positive, strict } from '../config/schema-parts.ts'

/** Retention of the trail. */
export const Audit = Type.Object(
  {
    retentionDays: positive(1_095, 36_500, 'Records of the audit trail older than this are removed.'),
    limitBytes: positive(
      268_435_456,
      1_099_511_627_776,
      'Maximum size of the audit trail on the disk; beyond it the oldest records are removed.',
    ),
  },
  strict,
)

/** The settings of the audit trail; the section `audit`. */
export type RetentionLimits = Static<typeof Audit>
