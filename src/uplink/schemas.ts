import { Type, type Static } from 'typebox'

/** Reasons of the condition `Wanted`. */
export const wantedReasons = [
  ...(['Applied', 'Downloading', 'Applying', 'DownloadFailed', 'SumWrong', 'Refused'] as const),
  ...(['ContentMissing', 'NewerOnHost', 'DeletedOnHost', 'ClusterExists', 'Deleting', 'Deleted'] as const),
] as const

/** State of the registration of this host, in `status.registrationStatus` and in the reply of `GET /v1/edge-mgmt/platform`. */
export const RegistrationStatus = Type.Enum([
  'not applicable',
  'pending',
  'registered',
  'removed',
  'duplicate',
])
export type RegistrationStatus = Static<typeof RegistrationStatus>

const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

/** Reply of `GET /v1/edge-mgmt/platform`: this host and the platform that manages it. */
export const PlatformLink = Type.Object(
  {
    mode: Type.Enum(['airgap', 'connected']),
    url: Type.Optional(Type.String({ description: 'Address of the platform.' })),
    proxy: Type.Optional(Type.String()),
    registrationStatus: Type.Unsafe<RegistrationStatus>({
      ...RegistrationStatus,
      description:
        'not applicable in airgap mode, pending until the first registration, registered, removed on the platform, duplicate where another machine uses the key of this host.',
    }),
    edgeHostUid: Type.Optional(Type.String({ description: 'Uid of this host on the platform.' })),
    projectUid: Type.Optional(
      Type.String({ description: 'Project of this host on the platform; empty for the tenant.' }),
    ),
    projectName: Type.Optional(
      Type.String({ description: 'Its name, from the last login since the start of edgehostd.' }),
    ),
    isConnected: Type.Boolean({ description: 'Whether the last call was answered as it should.' }),
    since: time('Time since which the host is connected, or not.'),
    lastContactTimestamp: time('Time of the last reply to a heartbeat.'),
    nextAttemptTimestamp: time('Time of the next attempt, while the host is not connected.'),
    cause: Type.Optional(
      Type.Object(
        {
          kind: Type.String({
            description:
              'For example name, route, proxy, certificateIssuer, tokenRefused, removed, existsTwice.',
          }),
          message: Type.String({ description: 'The problem, and what to do.' }),
        },
        { description: 'Why the host is not connected.' },
      ),
    ),
    wanted: Type.Optional(
      Type.Object(
        {
          number: Type.Optional(
            Type.Integer({
              description: 'Of the desired state of the platform; absent where it wants nothing.',
            }),
          ),
          acceptedNumber: Type.Integer({
            minimum: 0,
            description: 'The newest number of this cluster that this host has accepted; 0 for none.',
          }),
          clusterUid: Type.Optional(Type.String()),
          clusterName: Type.Optional(Type.String()),
          condition: Type.Optional(
            Type.Object(
              {
                status: Type.Enum(['True', 'False', 'Unknown']),
                reason: Type.Enum([...wantedReasons]),
                message: Type.String({ description: 'For operators; may be empty.' }),
              },
              { description: 'Its progress; True: the host is as the platform wants it.' },
            ),
          ),
          download: Type.Optional(
            Type.Object(
              { receivedBytes: Type.Integer({ minimum: 0 }), totalBytes: Type.Integer({ minimum: 0 }) },
              { description: 'While it is being downloaded.' },
            ),
          ),
        },
        {
          description: 'Desired cluster of the platform on this host; absent where it never wanted one.',
        },
      ),
    ),
    events: Type.Object(
      {
        waiting: Type.Integer({ minimum: 0, description: 'Events that the platform does not have yet.' }),
        dropped: Type.Integer({
          minimum: 0,
          description: 'Events that gave way to newer ones and are reported as one gap.',
        }),
      },
      { description: 'Events of this host on their way to the platform.' },
    ),
  },
  { title: 'PlatformLink' },
)
export type PlatformLink = Static<typeof PlatformLink>
