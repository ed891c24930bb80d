import { Type } from 'typebox'
import { strict } from '../config/schema-parts.ts'
import type { Declaration } from '../root/room.ts'

const Pages = Type.Object(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'Whether a browser gets the pages at /; the service API is the same without them.',
    }),
  },
  strict,
)

/** The pages for browsers. */
export const about = { config: { pages: Pages } } as const satisfies Declaration
