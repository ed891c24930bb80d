import { Type, type Static } from 'typebox'

/** The one body of every error. `code` is a key of the error table, `ref` the request id that the journal also holds. */
export const ErrorBody = Type.Object(
  {
    code: Type.String({ description: 'Stable name, see docs/errors.md.' }),
    message: Type.String({ description: 'For people; names the field that is wrong.' }),
    details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    ref: Type.Optional(
      Type.String({ description: 'Request id; also in the header X-Request-Id and in the journal.' }),
    ),
  },
  { title: 'Error' },
)

/** Reply schemas of the errors a route can give, for the `response` of its schema. */
export function errorReplies<Status extends number>(
  ...statuses: readonly Status[]
): Record<Status, typeof ErrorBody> {
  return Object.fromEntries(statuses.map((status) => [status, ErrorBody])) as Record<Status, typeof ErrorBody>
}

/** For `response` of a route that answers with an ETag. */
export const notModified = { 304: Type.Null({ description: 'The client holds the current reply.' }) }

/** A reply without content. */
export const NoContent = Type.Null({ description: 'No content' })

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
