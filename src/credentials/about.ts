import type { Declaration } from '../root/room.ts'
import { credentialErrors } from './codes.ts'

/** What hosts and the platform do alike when they check a password. */
export const about = { errors: credentialErrors } as const satisfies Declaration
