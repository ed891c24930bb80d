import { Type, type Static } from 'typebox'

/** Reply of `GET /v1/system/status`: the state of the platform. */
export const PlatformStatus = Type.Object(
  {
    version: Type.String({ description: 'Version of the platform.' }),
    startTimestamp: Type.String({ format: 'date-time', description: 'Start of the platform.' }),
    uptimeSeconds: Type.Integer({
      minimum: 0,
      description: 'Time since the start, regardless of changes of the clock.',
    }),
    addresses: Type.Array(Type.String(), {
      description: 'Addresses of this machine at which clients may reach the API.',
    }),
    port: Type.Integer(),
    certificate: Type.Object({
      fingerprint: Type.String({ description: 'SHA-256 of the certificate, as AA:BB:...' }),
      expirationTimestamp: Type.String({ format: 'date-time' }),
      isOwn: Type.Boolean({
        description:
          'Whether the platform made the certificate and renews it; otherwise the administrator does.',
      }),
    }),
    failing: Type.Array(Type.String(), {
      description: 'Checks that fail; empty while the platform is ready.',
    }),
    notes: Type.Array(Type.String(), {
      description: 'Other checks that fail: the platform works, and an operator has to act.',
    }),
    state: Type.Object(
      { freeBytes: Type.Integer(), totalBytes: Type.Integer() },
      { description: 'The file system of the state folder.' },
    ),
    unwrittenAudits: Type.Integer({
      description: 'Audit records since the start that only the journal has.',
    }),
  },
  { title: 'PlatformStatus' },
)
export type PlatformStatus = Static<typeof PlatformStatus>
