import { Type, type Static } from 'typebox'
import { AuditsQuery as HostAuditsQuery } from '../../audit/schemas.ts'

const { startTime, endTime, resourceKind, actionType } = HostAuditsQuery.properties
const Uid = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }))

/** Parameters that select records, in addition to the common ones of lists. */
export const AuditsQuery = Type.Object({
  startTime,
  endTime,
  userUid: Uid('Only requests of this user. A refused request has it only where the user is known.'),
  projectUid: Uid('Only records with effect in this project.'),
  tenantUid: Uid('Every record is of the one tenant.'),
  resourceKind,
  resourceUid: Uid('Only records about this resource.'),
  actionType,
})
export type AuditsQuery = Static<typeof AuditsQuery>

/** A record of the trail in the API. */
export const Audit = Type.Object(
  {
    metadata: Type.Object({
      creationTimestamp: Type.String({ format: 'date-time' }),
      number: Type.Integer({ minimum: 1, description: 'Place in the trail: 1, 2, 3 … without a gap.' }),
      uid: Type.String({ description: 'Value of the header AuditUid of the reply.' }),
    }),
    spec: Type.Object({
      actionMsg: Type.String(),
      actionType: Type.Enum(['create', 'update', 'delete', 'action', 'activity']),
      actor: Type.Object({
        actorType: Type.Enum(['user', 'system', 'service'], { description: 'service: a host.' }),
        address: Type.Optional(Type.String({ description: 'Source address of the request.' })),
        project: Type.Optional(
          Type.Object(
            { name: Type.String(), uid: Type.String() },
            {
              description:
                'Project of the effect; without it, the tenant. The name is empty once it is deleted.',
            },
          ),
        ),
        role: Type.Optional(
          Type.Enum(['admin', 'operator', 'viewer'], { description: 'Role there at that time.' }),
        ),
        serviceName: Type.Optional(
          Type.String({ description: 'The program, or the host, where it acted by itself.' }),
        ),
        user: Type.Optional(
          Type.Object({
            emailId: Type.String({
              description: 'Empty where the user is not known; root for the local socket.',
            }),
            firstName: Type.String(),
            lastName: Type.String(),
            uid: Type.String(),
          }),
        ),
      }),
      outcome: Type.Enum(['success', 'refused', 'failed', 'unknown'], {
        description: 'unknown: the platform was interrupted during the operation.',
      }),
      requestId: Type.Optional(Type.String()),
      resource: Type.Object({
        kind: Type.String(),
        name: Type.Optional(Type.String()),
        uid: Type.String({ description: 'Empty where there is none.' }),
      }),
      status: Type.Optional(Type.Integer({ description: 'HTTP status of the reply.' })),
    }),
  },
  { title: 'Audit' },
)
export type Audit = Static<typeof Audit>
