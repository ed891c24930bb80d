import { Type, type Static } from 'typebox'

/** The reply of `GET /v1/edge-mgmt/edgehosts/current/status`: the state of the daemon. */
export const ServiceStatus = Type.Object(
  {
    version: Type.String({ description: 'Version of edgehostd.' }),
    mode: Type.Enum(['airgap', 'connected']),
    startTimestamp: Type.String({ format: 'date-time', description: 'Start time of the daemon.' }),
    uptimeSeconds: Type.Integer({
      minimum: 0,
      description: 'Time since the start, regardless of changes of the clock.',
    }),
    addresses: Type.Array(Type.String(), {
      description: 'Addresses of this host at which clients may reach the API.',
    }),
    port: Type.Integer(),
    certificate: Type.Object({
      fingerprint: Type.String({ description: 'SHA-256 of the certificate, as AA:BB:...' }),
      expirationTimestamp: Type.String({ format: 'date-time' }),
      isOwn: Type.Boolean({
        description:
          'Whether the daemon made the certificate and renews it; otherwise the administrator does.',
      }),
    }),
    failing: Type.Array(Type.String(), { description: 'Checks that fail; empty while the daemon is ready.' }),
    notes: Type.Array(Type.String(), {
      description: 'Other checks that fail: the daemon works, and an operator has to act.',
    }),
    state: Type.Object(
      { freeBytes: Type.Integer(), totalBytes: Type.Integer() },
      { description: 'The file system of the state folder.' },
    ),
    unwrittenAudits: Type.Integer({
      description: 'Audit records since the start that only the journal has.',
    }),
  },
  { title: 'ServiceStatus' },
)
export type ServiceStatus = Static<typeof ServiceStatus>
