import { Type, type Static } from 'typebox'
import { strict } from '../config/schema-parts.ts'

const identitySources = [
  'product-uuid',
  'product-serial',
  'board-serial',
  'chassis-serial',
  'device-tree-serial',
  'machine-id',
]

/** The name and identity of this host, and who manages it. */
export const Host = Type.Object(
  {
    id: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
        accepts: '1 to 128 letters, digits, dots, dashes and underscores, the first a letter or digit',
        examples: ['press-3'],
        description:
          'Identity of this host, used as it is; without it the identity comes from identitySources.',
      }),
    ),
    identitySources: Type.Array(
      Type.String({
        pattern: `^(${identitySources.join('|')}|/[^\\0]*[^/\\0])$`,
        accepts: `${identitySources.join(', ')} or the absolute path of a file`,
      }),
      {
        default: ['product-uuid', 'machine-id'],
        description:
          'Sources of the identity at the first start, the preferred one first; placeholders of vendors are skipped. Of a file, the first line counts. Where no source has a usable value, the identity is random.',
      },
    ),
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 253,
        examples: ['Press 3, hall B'],
        description: 'Name of this host; by default the id.',
      }),
    ),
    mode: Type.Union([Type.Literal('airgap'), Type.Literal('connected')], {
      default: 'airgap',
      description: 'airgap: clusters are managed here. connected: the platform manages them.',
    }),
    console: Type.Object(
      {
        issueFile: Type.String({
          pattern: '^(/[^\\0]+)?$',
          accepts: 'an absolute path, or an empty string for no such file',
          default: '/run/issue.d/edgehostd.issue',
          description: 'File from which the console shows address and fingerprint above its login prompt.',
        }),
      },
      strict,
    ),
  },
  strict,
)

export type HostSettings = Static<typeof Host>
