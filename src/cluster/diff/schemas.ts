import { Type, type Static } from 'typebox'

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const list = (description: string) => Type.Array(Type.String(), { description })

const Change = Type.Enum(['added', 'removed', 'changed'])
export type Change = Static<typeof Change>

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
    { description: 'What differs.' },
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
    description: 'Its number: of a removed one as the values are, of an added one as they will be.',
  }),
  text: text('Sensitive values are masked, and long lines are cut.'),
})
export type LineChange = Static<typeof LineChange>

export const packFields = [
  'version',
  'values',
  'order',
  'manifests',
  'charts',
  'namespaces',
  'content',
] as const

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
        'What differs. values: its values, or a variable in them. order: when it is installed. content: what is installed, where the pack was prepared by an earlier version of edgehostd, so that no more is known.',
    }),
    values: Type.Optional(
      Type.Array(LineChange, {
        description:
          'The lines in which its values differ, with their macros: variables shows what these have. At most 200; absent if the values are the same.',
      }),
    ),
    valuesLeftOut: Type.Optional(
      Type.Integer({ description: 'How many further lines differ; absent for none.' }),
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
  pack: maybe('The pack that it concerns: profile uid and name.'),
  restarts: list('What is restarted; empty if it is applied without a restart.'),
  message: text('What happens.'),
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
        'Packs that differ: the wanted ones in the order of their installation, then removed ones.',
    }),
    variables: Type.Array(VariableChange, { description: 'Variables whose values differ.' }),
    settings: Type.Object({
      ntpServers: Type.Optional(ListChange),
      sshKeys: Type.Optional(ListChange),
    }),
    effects: Type.Array(Effect, { description: 'What is done for it, and what is restarted.' }),
  },
  { title: 'ClusterDiff', description: 'How a cluster would change.' },
)
export type ClusterDiff = Static<typeof ClusterDiff>
