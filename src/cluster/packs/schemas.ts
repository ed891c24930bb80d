import { Type, type Static } from 'typebox'
import { Variable } from '../../definition/schemas.ts'

// Wire names as the published API spells them; displayName is an addition of ours.

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

export const packStatuses = ['Pending', 'Applying', 'Applied', 'Available', 'Unavailable', 'Failed'] as const

const PackCondition = Type.Object({
  type: Type.Enum(['Applied', 'Available']),
  status: Type.Enum(['True', 'False']),
  reason: text('One word: the status of the pack where the condition is False.'),
  message: text('The wait, or the problem; may be empty.'),
})

const PackContent = Type.Object({
  contentType: Type.Enum(['image', 'artifact', 'chart']),
  name: text('An image as it is pulled; a chart with its version.'),
  syncStatus: text(
    'completed: an image is in the content of this host, a chart is installed. pending: the chart is not installed yet.',
  ),
  syncMsg: maybe('Its place.'),
})

const PackInfo = Type.Object(
  {
    name: Type.String(),
    displayName: maybe('Distinguishes it from other uses of the same pack in the profile.'),
    version: Type.String(),
    layer: text('os, k8s, cni, csi or addon.'),
    type: text('Source of its charts and manifests: spectro, helm, manifest or oci.'),
    values: text('YAML as the profile has it, with macros.'),
    logo: text('A data URL (RFC 2397) of an image; empty if there is none.'),
    icon: maybe('Path of the same image, if it is PNG or SVG; it is served without a token.'),
    status: Type.Enum(packStatuses, {
      description:
        'Pending: not started. Applying. Applied: its workloads are waited for. Available. Unavailable: a workload went down. Failed: it is tried again.',
    }),
    startTime: time('Its start; absent before.'),
    endTime: time('Time of its first availability; absent before.'),
    conditions: Type.Array(PackCondition),
    contents: Type.Array(PackContent),
  },
  { title: 'PackInfo' },
)
export type PackInfo = Static<typeof PackInfo>

const ClusterVariable = Type.Object(
  {
    ...Variable.properties,
    value: text('In this cluster: the given value, or the default; ******** if the variable is sensitive.'),
  },
  { title: 'ClusterVariable' },
)

const ClusterProfileTemplate = Type.Object(
  {
    uid: Type.String(),
    name: Type.String(),
    type: text('cluster (infrastructure and add-ons in one), infra, add-on or system.'),
    version: Type.String(),
    description: Type.String(),
    packs: Type.Array(PackInfo),
    variables: Type.Array(ClusterVariable),
  },
  { title: 'ClusterProfileTemplate' },
)

export const ClusterCurrentApplications = Type.Object(
  { clusterProfileTemplates: Type.Array(ClusterProfileTemplate) },
  {
    title: 'ClusterCurrentApplications',
    description: 'The profiles of the cluster and the state of their packs.',
  },
)
export type ClusterCurrentApplications = Static<typeof ClusterCurrentApplications>
