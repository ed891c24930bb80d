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

const text = (description: string) => Type.String({ description })

/** The reply of `GET /v1/edge-mgmt/edgehosts/current/attention`. */
export const AttentionList = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        code: text('Stable; docs/attention.md has all.'),
        severity: Type.Enum(['error', 'warning', 'info'], {
          description:
            'error: something does not work. warning: something will not, or works in part. info: work goes on, or waits for an operator.',
        }),
        message: text('For people, one line.'),
        command: Type.Optional(
          text('The next command, on this host; absent where the message says what to do.'),
        ),
        object: Type.Optional(
          Type.Object({
            kind: text('For example pack, Pod, fact, check.'),
            name: Type.String(),
            namespace: Type.Optional(Type.String()),
          }),
        ),
        sinceTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
      }),
      { description: 'The most urgent first; empty where there is nothing to do.' },
    ),
  },
  { title: 'AttentionList' },
)
export type AttentionList = Static<typeof AttentionList>
