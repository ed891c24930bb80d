import { Type, type Static } from 'typebox'

// Wire names of the published API; fields that it lacks (number, uid, outcome and others) are added.

const actionTypes = ['create', 'update', 'delete', 'action', 'activity'] as const

/** The required format of a time in a query. */
export const timeForm = 'a time with a time zone as RFC 3339 writes it, for example 2026-01-31T08:00:00Z'

// RFC 3339, section 5.6; empty means not set.
const Time = (description: string) =>
  Type.Optional(
    Type.String({
      accepts: timeForm,
      pattern: '^$|^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?([Zz]|[+-]\\d\\d:\\d\\d)$',
      description,
    }),
  )
const Text = (description: string) => Type.Optional(Type.String({ maxLength: 256, description }))

/** Parameters that select records, beside the parameters of every list. */
export const AuditsQuery = Type.Object({
  startTime: Time('Only records from this time on, RFC 3339.'),
  endTime: Time('Only records up to this time, RFC 3339.'),
  userUid: Text('Name of the account. A refused login has it only if the account exists.'),
  resourceKind: Text('For example session; audits/filters lists them.'),
  actionType: Type.Optional(
    Type.Enum([...actionTypes, ''], {
      description: 'create, update, delete, action (an operation) or activity (users and sessions).',
    }),
  ),
})
export type AuditsQuery = Static<typeof AuditsQuery>

export const Audit = Type.Object(
  {
    metadata: Type.Object({
      createTimestamp: Type.String({ format: 'date-time' }),
      edgeHostId: Type.String(),
      number: Type.Integer({ minimum: 1, description: 'Place in the trail: 1, 2, 3 … without a gap.' }),
      uid: Type.String({ description: 'Value of the header AuditUid of the reply.' }),
    }),
    spec: Type.Object({
      actionType: Type.Enum([...actionTypes]),
      actor: Type.Object({
        actorType: Type.Enum(['user', 'system']),
        address: Type.Optional(Type.String({ description: 'Address of the client.' })),
        role: Type.Optional(Type.Enum(['admin', 'viewer'])),
        uid: Type.String({ description: 'Name of the account; empty when it is not known.' }),
      }),
      message: Type.String(),
      outcome: Type.Enum(['success', 'refused', 'failed', 'unknown'], {
        description: 'unknown: the daemon was interrupted during the operation.',
      }),
      requestId: Type.Optional(Type.String()),
      resource: Type.Object({
        kind: Type.String(),
        name: Type.Optional(Type.String()),
        uid: Type.Optional(Type.String()),
      }),
      status: Type.Optional(Type.Integer({ description: 'HTTP status of the reply.' })),
    }),
  },
  { title: 'Audit' },
)
/** A record in the API. */
export type AuditView = Static<typeof Audit>

export const AuditFilters = Type.Record(
  Type.String(),
  Type.Array(Type.Object({ label: Type.String(), value: Type.String() })),
  { description: 'The existing values, by the name of the query parameter.' },
)

export const VerifyQuery = Type.Object({
  head: Type.Optional(
    Type.String({
      accepts: '<number>:<hash> from an hourly line of the journal, the hash in 64 hexadecimal digits',
      pattern: '^$|^[1-9][0-9]{0,14}:[0-9a-f]{64}$',
      description:
        '<number>:<hash> from an earlier line of the journal; must be in the trail. A record that retention has removed cannot be compared, except for the last one removed, and is reported as a problem.',
    }),
  ),
})

export const VerifyReply = Type.Object({
  isIntact: Type.Boolean(),
  count: Type.Integer({ description: 'Number of verified records.' }),
  first: Type.Integer({ description: 'Number of the oldest record; retention removed the earlier ones.' }),
  head: Type.Object({
    number: Type.Integer(),
    hash: Type.String({ description: 'SHA-256, hex.' }),
  }),
  unwritten: Type.Integer({ description: 'Records since the start that are only in the journal.' }),
  problem: Type.Optional(
    Type.Object(
      { number: Type.Integer(), message: Type.String() },
      { description: 'The first problem found.' },
    ),
  ),
})
