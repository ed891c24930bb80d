import { Type } from 'typebox'
import { strict } from '../config/schema-parts.ts'
import { Guard } from '../credentials/config.ts'

/** What the platform is called by those who use it. */
export const PlatformSection = Type.Object(
  {
    hostName: Type.Optional(
      Type.String({
        pattern:
          '^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$',
        accepts: 'a DNS name',
        examples: ['platform.plant.example'],
        description:
          'The name under which hosts and users reach the platform. Its own certificate has this name; without it, the name of the machine.',
      }),
    ),
    guard: Guard,
  },
  strict,
)
