import { Type, type Static, type TProperties } from 'typebox'

// Wire types of what hosts report of their clusters, as the published API spells them. number, steps and some others are additions of ours.

const given = (maxLength = 256) => Type.Optional(Type.String({ maxLength }))
const group = <Properties extends TProperties>(properties: Properties) =>
  Type.Optional(Type.Object(properties))
const longText = Type.String({ maxLength: 4_096 })
const time = Type.Optional(Type.String({ maxLength: 64, format: 'date-time' }))

const whole = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }))

// What a host reports becomes the number of the next change, which has to stay far below what JSON can tell.
const numberOf = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999_999_999, description }))

/** A condition of a cluster, as its host reports it. */
export const ClusterCondition = Type.Object(
  {
    lastProbeTime: time,
    lastTransitionTime: time,
    message: Type.Optional(longText),
    observedGeneration: numberOf('Of the condition Wanted: the number of what is wanted that it is about.'),
    reason: given(),
    status: Type.String({ maxLength: 64 }),
    type: Type.String({ minLength: 1, maxLength: 256 }),
  },
  { title: 'ClusterCondition' },
)
export type ClusterCondition = Static<typeof ClusterCondition>
export const ClusterConditions = Type.Array(ClusterCondition, { maxItems: 64 })

export const ClusterStep = Type.Object(
  {
    key: Type.String({ maxLength: 512 }),
    title: Type.String({ maxLength: 512 }),
    pack: given(512),
    state: Type.Enum(['running', 'done', 'failed']),
    failures: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    reason: Type.Optional(longText),
    startTimestamp: time,
    endTimestamp: time,
    nextTryTimestamp: time,
  },
  { title: 'ClusterStep' },
)
export type ClusterStep = Static<typeof ClusterStep>

/** What a host says of its cluster each minute. */
export const ClusterHeartbeat = Type.Object(
  {
    agentVersion: Type.String({ maxLength: 64 }),
    message: Type.Optional(longText),
    number: numberOf('The newest number of what is wanted that the host has accepted.'),
    seenNumber: numberOf('The newest number that the host has dealt with, also by a refusal.'),
    revision: whole('The revision that the host is made as.'),
    state: Type.Optional(
      Type.Enum(['Pending', 'Provisioning', 'Running', 'Deleting', 'Error', 'Deleted'], {
        description: 'Deleted: the host has the cluster no more.',
      }),
    ),
    steps: Type.Optional(Type.Array(ClusterStep, { maxItems: 1_000 })),
  },
  { title: 'SpectroClusterHeartbeat' },
)
export type ClusterHeartbeat = Static<typeof ClusterHeartbeat>

/** How far the packs of a cluster are. */
export const PacksStatus = Type.Object(
  {
    packs: Type.Optional(
      Type.Array(
        Type.Object(
          {
            condition: group({
              message: Type.Optional(longText),
              reason: given(),
              status: given(64),
              type: given(64),
            }),
            endTime: time,
            name: given(512),
            profileUid: given(128),
            startTime: time,
            type: given(64),
            version: given(),
          },
          { title: 'SpectroClusterPackStatusEntity' },
        ),
        { maxItems: 1_000 },
      ),
    ),
  },
  { title: 'SpectroClusterPacksStatusEntity' },
)
export type PacksStatus = Static<typeof PacksStatus>
export type PackStatus = NonNullable<PacksStatus['packs']>[number]
export const KubeconfigEntity = Type.Object(
  { kubeconfig: Type.String({ minLength: 1, maxLength: 262_144 }) },
  { title: 'SpectroClusterAssetKubeConfig' },
)
