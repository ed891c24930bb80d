import { Type, type Static } from 'typebox'

/** The one body of every error. `code` is a key of the error table, `ref` the request id, which is also in the journal. */
export const ErrorBody = Type.Object(
  {
    code: Type.String({ description: 'Stable name, see docs/errors.md.' }),
    message: Type.String({ description: 'Message for people; names the invalid field.' }),
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
export const notModified = { 304: Type.Null({ description: 'The client has the current reply.' }) }

/** Data of a state in the stream of events. */
export const StateMessage = Type.Object(
  {
    state: Type.Unknown({ description: 'The state, or null where there is none, as without a cluster.' }),
    sum: Type.String({ description: 'Of the state and of more that the paths show.' }),
    paths: Type.Array(Type.String(), { description: 'Reads that may answer otherwise now.' }),
  },
  { title: 'StateMessage' },
)
export type StateMessage = Static<typeof StateMessage>

/** A reply without content. */
export const NoContent = Type.Null({ description: 'No content' })
