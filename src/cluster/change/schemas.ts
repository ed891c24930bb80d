import { Type, type Static } from 'typebox'
import { ClusterDiff } from '../diff/schemas.ts'
import { origins } from '../revisions/revision.ts'
import { outcomes } from '../revisions/outcomes.ts'
import { MetaData, PlannedStep, PreflightProblem, ProfileVariables } from '../schemas.ts'

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

/** Another definition for the cluster. */
export const ClusterProfileConfiguration = Type.Object(
  {
    metadata: Type.Optional(MetaData),
    spec: Type.Optional(
      Type.Object({
        archiveUploadPath: maybe(
          'The definition: archiveUploadPath of GET /v1/edge-mgmt/clusters/archive/{update,overridden}/details or of its upload; that of GET /v1/edge-mgmt/cluster keeps the definition.',
        ),
        profileVariables: Type.Optional({
          ...ProfileVariables,
          description: 'Values that are other or new; all others stay. An empty value takes the default.',
        }),
        scheduleAt: maybe(
          'When the change is to be begun: RFC 3339, in the future; empty: at once; absent: when the change that waits would be begun.',
        ),
      }),
    ),
  },
  { title: 'ClusterProfileConfiguration' },
)
export type ClusterProfileConfiguration = Static<typeof ClusterProfileConfiguration>

/** Settings of the host; what is left out is taken away. */
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
    path: text('A JSON Pointer (RFC 6901) into what GET gives, for example /spec/profileVariables/0/value.'),
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
      'Whether what was written to the API of Kubernetes since its copy may be lost; needed to go back to an older Kubernetes.',
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
        'Whether the change would be accepted and wait, since required variables without a value are all that is wrong.',
    }),
    problems: Type.Array(PreflightProblem, { description: 'Errors before warnings.' }),
    plan: Type.Array(PlannedStep, {
      description: 'What would be done, in this order; empty where an error leaves no plan.',
    }),
    revision: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Of a rollback: the revision that would be applied again.' }),
    ),
    diff: Type.Optional({
      ...ClusterDiff,
      description:
        'How the cluster would change from what the host is made as now; also of a change that waits already. Absent where nothing differs or waits, and where an error other than a missing value was found.',
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
          creationTimestamp: Type.String({ format: 'date-time', description: 'When it was accepted.' }),
          by: text('Account that wrote it; empty of a way back, and where that is not known any more.'),
          origin: Type.Enum([...origins], {
            description:
              'goingBack: made by the host itself of the packs of the last good revision and of the Kubernetes that runs, where a pack was not available with another version of Kubernetes.',
          }),
          definition: Type.Object({ name: Type.String(), version: Type.String() }),
          kubernetesVersion: text('For example 1.34.4.'),
          outcome: Type.Enum([...outcomes], {
            description:
              'waiting: begun next, or at scheduleAt. held: required variables have no value. superseded: a later write took its place.',
          }),
          reason: maybe('Why it is held or has failed.'),
          scheduleAt: Type.Optional(
            Type.String({ format: 'date-time', description: 'When it is begun; absent: at once.' }),
          ),
          endTimestamp: Type.Optional(
            Type.String({ format: 'date-time', description: 'When it was good, failed or superseded.' }),
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
