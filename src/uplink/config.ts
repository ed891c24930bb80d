import { Type, type Static } from 'typebox'
import { path, strict } from '../config/schema-parts.ts'

const hex = '[0-9A-Fa-f]{2}'

/** The platform of this host; `edgehostctl platform connect` writes it. */
export const PlatformOfHost = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        pattern: '^https://[^/?#@\\s]+/?$',
        accepts: 'an https:// URL without a path, for example https://platform.plant.example',
        examples: ['https://platform.plant.example'],
        description: 'Address of the platform, with host.mode: connected.',
      }),
    ),
    caFile: Type.Optional(
      path(
        '/etc/edgehostd/platform-ca.pem',
        'Authorities that sign the certificate of the platform; without it, and without a fingerprint, system authorities.',
      ),
    ),
    fingerprint: Type.Optional(
      Type.String({
        pattern: `^(${hex}:){31}${hex}$`,
        accepts: 'a SHA-256 fingerprint as AA:BB:...',
        examples: [`${'AB:'.repeat(31)}AB`],
        description:
          'The one certificate of the platform that is accepted, whatever its names and times; instead of caFile.',
      }),
    ),
    registrationTokenFile: Type.Optional(
      path(
        '/var/lib/edgehostd/platform/registration-token',
        'File, mode 0600, with the token that registers this host; removed when the host is registered.',
      ),
    ),
    proxy: Type.Optional(
      Type.String({
        pattern: '^http://[^/?#@\\s]+/?$',
        accepts: 'http://HOST:PORT, without a login',
        examples: ['http://proxy.plant.example:3128'],
        description: 'HTTP proxy for all calls to the platform; without it they go out directly.',
      }),
    ),
  },
  strict,
)
export type PlatformOfHost = Static<typeof PlatformOfHost>
