import type { Declaration } from '../root/room.ts'
import { diagnosisErrors } from './codes.ts'
import { Diagnosis } from './config.ts'

/** What finds the cause of trouble on this host. */
export const about = {
  errors: diagnosisErrors,
  config: { diagnosis: Diagnosis },
  tags: { diagnosis: 'Files of this host, and its connections to others.' },
} as const satisfies Declaration
