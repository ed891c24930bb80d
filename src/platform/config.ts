import { Type } from 'typebox'
import { positive, strict } from '../config/schema-parts.ts'
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
    keptConnections: positive(
      2_000,
      10_000,
      'Connections of hosts that stay open between two heartbeats, one of each host; those of further hosts are closed after each reply.',
    ),
    guard: Guard,
  },
  strict,
)
