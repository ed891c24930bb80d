import { archiveErrors } from '../archive/codes.ts'
import type { Declaration } from '../root/room.ts'
import { definitionErrors } from './codes.ts'
import { Definitions } from './config.ts'

/** Cluster definitions. */
export const about = {
  errors: { ...archiveErrors, ...definitionErrors },
  config: { definitions: Definitions },
  limited: ['icons'],
  tags: { clusters: 'Cluster definitions, their contents and their variables.' },
} as const satisfies Declaration
