import type { Declaration } from '../root/room.ts'
import { Log, State } from './config.ts'

/** The process. */
export const about = { config: { log: Log, state: State } } as const satisfies Declaration
