import { Type, type Static } from 'typebox'
import { strict } from '../config/schema-parts.ts'

/** Changes of the network of this host. */
export const Network = Type.Object(
  {
    shortestWindowSeconds: Type.Integer({
      minimum: 5,
      maximum: 600,
      default: 30,
      description:
        'Least time that a change of the network may be tried before it is taken back; below 30 only for tests, since a client has to connect anew in that time.',
    }),
  },
  strict,
)
export type NetworkSettings = Static<typeof Network>
