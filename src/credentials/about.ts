import type { Declaration } from '../root/room.ts'
import { credentialErrors } from './codes.ts'

/** The check of a password, common to hosts and the platform. */
export const about = { errors: credentialErrors } as const satisfies Declaration
