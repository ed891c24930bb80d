import { Type, type Static } from 'typebox'
import { positive, strict } from '../config/schema-parts.ts'

const tebibyte = 1_099_511_627_776

/** Content of this host: its folder, the space that stays free on its disk, and the rules for uploads. */
export const Content = Type.Object(
  {
    directory: Type.String({
      pattern: '^(/[^\\0]*)?$',
      accepts: 'an absolute path, or nothing',
      default: '',
      description:
        'Folder of the content; empty is content/ in the state folder. The unit may write only below the state folder: mount a larger disk there.',
    }),
    requireMount: Type.Boolean({
      default: false,
      description: 'Whether the daemon refuses to start while no file system is mounted at the folder.',
    }),
    reserve: Type.Object(
      {
        percent: Type.Integer({
          minimum: 0,
          maximum: 90,
          default: 15,
          description:
            'Part of the file system that uploads leave free. With less than 15 % free the kubelet deletes images and evicts pods.',
        }),
        leastBytes: Type.Integer({
          minimum: 0,
          maximum: tebibyte,
          default: 2_147_483_648,
          description: 'Space that uploads leave free on a small file system, where the part would be less.',
        }),
      },
      strict,
    ),
    upload: Type.Object(
      {
        maximum: positive(4, 100, 'Files that are uploaded at the same time.'),
        unfinished: positive(16, 1_000, 'Unfinished uploads, blob by blob, that are kept.'),
        keptDays: positive(7, 365, 'Days without a byte after which an unfinished upload is forgotten.'),
      },
      strict,
    ),
    check: Type.Object(
      {
        days: positive(30, 3_650, 'Days in which all content is read again, to find damage of the disk.'),
        bytesPerSecond: positive(8_388_608, tebibyte, 'Most bytes that this reads in a second.'),
      },
      strict,
    ),
    registry: Type.Object(
      {
        enabled: Type.Boolean({
          default: true,
          description: 'Whether images and charts of the content can be pulled from this host.',
        }),
        address: Type.String({
          format: 'ip',
          accepts: 'an IPv4 or IPv6 address',
          default: '127.0.0.1',
          description:
            'Address of the registry. On loopback it speaks HTTP, on any other address HTTPS with the certificate of this host.',
        }),
        port: positive(5081, 65535, 'Port of the registry.'),
        anonymous: Type.Boolean({
          default: false,
          description:
            'Whether pulls need no password, as for dockerd, which sends none to a mirror. On loopback only.',
        }),
      },
      strict,
    ),
    signing: Type.Object(
      {
        publicKey: Type.Object(
          {
            base64EncodedValue: Type.String({
              maxLength: 65_536,
              default: '',
              description:
                'Base64 of a public key, PEM, RSA or EC. If set, every upload needs a detached signature, SHA-256, made with its private key.',
            }),
            description: Type.String({ maxLength: 1_024, default: '', description: 'Whose key it is.' }),
          },
          strict,
        ),
      },
      strict,
    ),
  },
  strict,
)

/** The section `content` of the configuration. */
export type ContentSettings = Static<typeof Content>
