import { Type, type Static } from 'typebox'

/** What `GET /v1/edge-mgmt/edgehosts/current/status` answers: how the daemon itself is. */
export const ServiceStatus = Type.Object(
  {
    version: Type.String({ description: 'Of edgehostd.' }),
    mode: Type.Enum(['airgap', 'connected']),
    startTimestamp: Type.String({ format: 'date-time', description: 'When the daemon started.' }),
    uptimeSeconds: Type.Integer({
      minimum: 0,
      description: 'Since then, however the clock was set meanwhile.',
    }),
    addresses: Type.Array(Type.String(), { description: 'Of this host, where the API may be reached.' }),
    port: Type.Integer(),
    certificate: Type.Object({
      fingerprint: Type.String({ description: 'SHA-256 of the certificate, as AA:BB:...' }),
      expirationTimestamp: Type.String({ format: 'date-time' }),
      isOwn: Type.Boolean({ description: "Made by the daemon, which renews it; else the administrator's." }),
    }),
    failing: Type.Array(Type.String(), { description: 'What keeps it from being ready; empty when it is.' }),
    state: Type.Object(
      { freeBytes: Type.Integer(), totalBytes: Type.Integer() },
      { description: 'The file system of the state folder.' },
    ),
    unwrittenAudits: Type.Integer({ description: 'Audits since the start that only the journal has.' }),
  },
  { title: 'ServiceStatus' },
)
export type ServiceStatus = Static<typeof ServiceStatus>
