import { Type, type Static } from 'typebox'
import { MetaData, PlannedStep, PreflightProblem, ProfileVariables } from '../schemas.ts'

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const list = (description: string) => Type.Array(Type.String(), { description })

const Change = Type.Enum(['added', 'removed', 'changed'])
type Change = Static<typeof Change>

const from = maybe('As it is; absent if added.')
const to = maybe('As it will be; absent if removed.')

const Definition = Type.Object({
  from: text('Name and version.'),
  to: text('Name and version; equal to from where only the content of the archive differs.'),
})

const KubernetesChange = Type.Object({
  from: text('Version, for example 1.34.4.'),
  to: text('Version.'),
  configurationChanged: Type.Boolean({
    description: 'Whether cluster.config of the Kubernetes pack differs.',
  }),
})

const NodeChange = Type.Object({
  fields: Type.Array(
    Type.Enum(['name', 'address', 'endpoint', 'virtualAddress', 'poolName', 'labels', 'taints']),
    { description: 'Differing parts.' },
  ),
})

const NamedChange = Type.Object({ name: Type.String(), change: Change })
export type NamedChange = Static<typeof NamedChange>

const ChartChange = Type.Object({
  name: text('Of the chart.'),
  namespace: text('Of its release.'),
  release: text('Name of the release.'),
  change: Change,
  fromVersion: from,
  toVersion: to,
  valuesChanged: Type.Boolean({ description: 'Whether the values that it is installed with differ.' }),
})
export type ChartChange = Static<typeof ChartChange>

const LineChange = Type.Object({
  change: Type.Enum(['added', 'removed']),
  line: Type.Integer({
    description: 'Its number: of a removed one in the present values, of an added one in the new ones.',
  }),
  text: text('Sensitive values are masked, and long lines are cut.'),
})
export type LineChange = Static<typeof LineChange>

const packFields = ['version', 'values', 'order', 'manifests', 'charts', 'namespaces', 'content'] as const

export const PackChange = Type.Object(
  {
    id: text('Profile uid and name.'),
    name: Type.String(),
    displayName: maybe('Absent if the pack has none.'),
    change: Change,
    fromVersion: from,
    toVersion: to,
    fields: Type.Array(Type.Enum(packFields), {
      description:
        'Differing parts. values: its values, or a variable in them. order: its place in the installation. content: the installed parts, where the pack was prepared by an earlier version of edgehostd, so that no more is known.',
    }),
    values: Type.Optional(
      Type.Array(LineChange, {
        description:
          'The lines in which its values differ, with their macros: variables shows the values of these. At most 200; absent if the values are the same.',
      }),
    ),
    valuesLeftOut: Type.Optional(
      Type.Integer({ description: 'Number of further lines that differ; absent for none.' }),
    ),
    manifests: Type.Array(NamedChange),
    charts: Type.Array(ChartChange),
    namespaces: Type.Array(NamedChange),
    isApplied: Type.Boolean({
      description: 'Whether something of the cluster is changed for it; false where the objects are equal.',
    }),
    isDrained: Type.Boolean({
      description: 'Whether its pods are evicted first, as pack.drainPods of its values says.',
    }),
  },
  { title: 'ClusterPackChange' },
)
export type PackChange = Static<typeof PackChange>

export const VariableChange = Type.Object(
  {
    profileUid: Type.String(),
    name: Type.String(),
    change: Change,
    isSensitive: Type.Boolean({ description: 'Its values are not shown then.' }),
    from,
    to,
  },
  { title: 'ClusterVariableChange' },
)
export type VariableChange = Static<typeof VariableChange>

const ListChange = Type.Object({ from: list('As they are.'), to: list('As they will be.') })

const Effect = Type.Object({
  target: Type.Enum(['host', 'node', 'kubernetes', 'pack']),
  pack: maybe('Its pack: profile uid and name.'),
  restarts: list('Restarts; empty if it is applied without any.'),
  message: text('The effect.'),
})
export type Effect = Static<typeof Effect>

export const ClusterDiff = Type.Object(
  {
    isEmpty: Type.Boolean({ description: 'Whether nothing differs.' }),
    definition: Type.Optional(Definition),
    kubernetes: Type.Optional(KubernetesChange),
    node: Type.Optional(NodeChange),
    packs: Type.Array(PackChange, {
      description:
        'Packs that differ: the desired ones in the order of their installation, then removed ones.',
    }),
    variables: Type.Array(VariableChange, { description: 'Variables whose values differ.' }),
    settings: Type.Object({
      ntpServers: Type.Optional(ListChange),
      sshKeys: Type.Optional(ListChange),
    }),
    effects: Type.Array(Effect, { description: 'Its effects, and the restarts.' }),
  },
  { title: 'ClusterDiff', description: 'Changes of a cluster.' },
)
export type ClusterDiff = Static<typeof ClusterDiff>

/** Outcomes of a revision. */
const outcomes = [
  // Accepted; it is started when nothing else is under way, or at its time.
  'waiting',
  // Accepted, but required variables have no value.
  'held',
  'applying',
  // The cluster was Running with it.
  'good',
  // It was not available in time; the last good one is applied again.
  'failed',
  // Failed, and the last good one runs again.
  'rolledBack',
  // A later write came before it was good.
  'superseded',
] as const
export type Outcome = (typeof outcomes)[number]

/** `goingBack`: the host made it by itself, of the packs of the last good revision and the Kubernetes that runs. */
const origins = ['create', 'update', 'rollback', 'goingBack'] as const
export type Origin = (typeof origins)[number]

const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

/** Another definition for the cluster. */
export const ClusterProfileConfiguration = Type.Object(
  {
    metadata: Type.Optional(MetaData),
    spec: Type.Optional(
      Type.Object({
        archiveUploadPath: maybe(
          'The definition: archiveUploadPath of GET /v1/edge-mgmt/clusters/archive/{update,overridden}/details or of its upload; the value of GET /v1/edge-mgmt/cluster keeps the definition.',
        ),
        profileVariables: Type.Optional({
          ...ProfileVariables,
          description: 'Values that are other or new; all others stay. An empty value takes the default.',
        }),
        scheduleAt: maybe(
          'Start time of the change: RFC 3339, in the future; empty: at once; absent: the start time of the waiting change.',
        ),
      }),
    ),
  },
  { title: 'ClusterProfileConfiguration' },
)
export type ClusterProfileConfiguration = Static<typeof ClusterProfileConfiguration>

/** Settings of the host; omitted ones are removed. */
export const EdgeClusterSettings = Type.Object(
  {
    ntpServers: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Names or addresses of servers from which the host takes its time.',
      }),
    ),
    sshKeys: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Public keys of OpenSSH, without options, for logins at the host.',
      }),
    ),
  },
  // A misspelt list would empty the other one, with the keys of all logins.
  { title: 'EdgeClusterSettings', additionalProperties: false },
)
export type EdgeClusterSettings = Static<typeof EdgeClusterSettings>

export const HttpPatch = Type.Object(
  {
    op: Type.Enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
    path: text(
      'A JSON Pointer (RFC 6901) into the document of GET, for example /spec/profileVariables/0/value.',
    ),
    from: maybe('A JSON Pointer; of move and copy.'),
    value: Type.Optional(Type.Unknown({ description: 'Of add, replace and test.' })),
  },
  { title: 'HttpPatch' },
)
export type HttpPatch = Static<typeof HttpPatch>

export const ClusterPatch = Type.Object(
  { clusterConfigPatches: Type.Optional(Type.Array(HttpPatch, { maxItems: 1_000 })) },
  { title: 'ClusterPatch' },
)
export type ClusterPatch = Static<typeof ClusterPatch>

export const ClusterRollback = Type.Object(
  {
    revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Absent: the last good revision before the present one.',
      }),
    ),
    discardChanges: flag(
      'Whether writes to the API of Kubernetes since its copy may be lost; needed to go back to an older Kubernetes.',
    ),
  },
  { title: 'ClusterRollback' },
)
export type ClusterRollback = Static<typeof ClusterRollback>

export const ClusterChangeDryRun = Type.Object(
  {
    isPossible: Type.Boolean({ description: 'Whether no problem is an error.' }),
    isChanged: Type.Boolean({ description: 'Whether anything differs from the newest accepted revision.' }),
    isHeld: Type.Boolean({
      description:
        'Whether the change would be accepted and wait, since required variables without a value are the only problem.',
    }),
    problems: Type.Array(PreflightProblem, { description: 'Errors before warnings.' }),
    plan: Type.Array(PlannedStep, {
      description: 'Planned steps, in this order; empty where an error leaves no plan.',
    }),
    revision: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Of a rollback: the revision that would be applied again.' }),
    ),
    diff: Type.Optional({
      ...ClusterDiff,
      description:
        'Changes of the cluster against the applied revision; also of a change that waits already. Absent where nothing differs or waits, and where an error other than a missing value was found.',
    }),
  },
  { title: 'ClusterChangeDryRun' },
)
export type ClusterChangeDryRun = Static<typeof ClusterChangeDryRun>

export const ClusterRevisions = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          revision: Type.Integer({ minimum: 1 }),
          creationTimestamp: Type.String({ format: 'date-time', description: 'Time of the acceptance.' }),
          by: text('Account that wrote it; empty of a way back, and where that is not known any more.'),
          origin: Type.Enum([...origins], {
            description:
              'goingBack: made by the host itself of the packs of the last good revision and of the Kubernetes that runs, where a pack was not available with another version of Kubernetes.',
          }),
          definition: Type.Object({ name: Type.String(), version: Type.String() }),
          kubernetesVersion: text('For example 1.34.4.'),
          outcome: Type.Enum([...outcomes], {
            description:
              'waiting: started next, or at scheduleAt. held: required variables have no value. superseded: a later write took its place.',
          }),
          reason: maybe('Why it is held or has failed.'),
          scheduleAt: Type.Optional(
            Type.String({ format: 'date-time', description: 'Its start time; absent: at once.' }),
          ),
          endTimestamp: Type.Optional(
            Type.String({
              format: 'date-time',
              description: 'Time at which it was good, failed or superseded.',
            }),
          ),
          isActive: Type.Boolean({ description: 'Whether the host is made as this revision says.' }),
        },
        { title: 'ClusterRevision' },
      ),
      { description: 'The newest first.' },
    ),
  },
  { title: 'ClusterRevisions' },
)
export type ClusterRevisions = Static<typeof ClusterRevisions>
