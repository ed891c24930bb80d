import { Type, type Static } from 'typebox'
import { positive, strict } from '../config/schema-parts.ts'
import { Guard } from '../credentials/config.ts'

const tebibyte = 1_099_511_627_776
const bytes = (fallback: number, description: string) => positive(fallback, tebibyte, description)

/** The platform: what it is called by those who use it, and what it takes from them. */
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
    packs: Type.Object(
      {
        limitBytes: bytes(4_294_967_296, 'Largest archive of a pack.'),
        reserveBytes: bytes(536_870_912, 'Space that stays free on the disk of the state folder.'),
        maximum: positive(2, 100, 'Packs that are received at the same time.'),
      },
      strict,
    ),
  },
  strict,
)

/** The section `platform` of the configuration. */
export type PlatformSettings = Static<typeof PlatformSection>
