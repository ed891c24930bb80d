import { Type, type Static } from 'typebox'
import { path, positive, strict } from '../config/schema-parts.ts'
import { Guard } from '../credentials/config.ts'

const tebibyte = 1_099_511_627_776
const bytes = (fallback: number, description: string) => positive(fallback, tebibyte, description)

/** The platform: its name for hosts and users, and its limits for them. */
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
      'Connections of hosts that stay open between two heartbeats, one of each host; the ones of further hosts are closed after each reply.',
    ),
    guard: Guard,
    packs: Type.Object(
      {
        limitBytes: bytes(4_294_967_296, 'Largest archive of a pack.'),
        scopeLimitBytes: bytes(
          68_719_476_736,
          'Limit on the disk for the packs of a project, for its cluster profiles, and each of both for the tenant itself.',
        ),
        reserveBytes: bytes(536_870_912, 'Space that stays free on the disk of the state folder.'),
        maximum: positive(
          2,
          100,
          'Packs and profiles whose bytes are written at the same time; where more arrive, their users take turns.',
        ),
        maximumPerUser: positive(
          16,
          128,
          'Uploads of packs and imports of profiles of one user that are not finished; further ones wait.',
        ),
        waitSeconds: positive(
          60,
          3_600,
          'An upload that has waited so long for others is refused (503 TooManyUploads).',
        ),
      },
      strict,
    ),
  },
  strict,
)

/** The section `platform` of the configuration. */
export type PlatformSettings = Static<typeof PlatformSection>

/** Addresses of clouds. No request names one, so no caller makes the platform ask an address of his choice. */
export const CloudsSection = Type.Object(
  {
    vendor: Type.Object(
      {
        authUrl: Type.Optional(
          Type.String({
            pattern: '^https://[^/?#@\\s]+(/[^?#@\\s]*)?$',
            accepts: 'an https:// URL, for example https://keystone.plant.example:5000/v3',
            examples: ['https://keystone.plant.example:5000/v3'],
            description: 'Keystone of the OpenStack whose servers are listed; without it there is no cloud.',
          }),
        ),
        caFile: Type.Optional(
          path(
            '/etc/edgeplatform/cloud-ca.pem',
            'Authorities that sign the certificates of this OpenStack; without it the ones of this system.',
          ),
        ),
        region: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 255,
            examples: ['RegionOne'],
            description: 'The region whose services are used; needed where the catalogue has several.',
          }),
        ),
        interface: Type.Union([Type.Literal('public'), Type.Literal('internal'), Type.Literal('admin')], {
          default: 'public',
          description: 'Endpoints of the catalogue that are used.',
        }),
      },
      strict,
    ),
  },
  strict,
)

/** The section `clouds` of the configuration. */
export type CloudsSettings = Static<typeof CloudsSection>
