import { Type, type Static } from 'typebox'
import { maybe } from '../../base/field-stance.ts'
import { ObjectMeta } from '../schemas.ts'
import { PackLayer, PackType, ProfileType } from '../packs/schemas.ts'
import { variableFields } from '../../definition/definition.ts'

const text = (description: string) => Type.String({ description })
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

/** A variable of a profile, in requests and in replies. */
export const Variable = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    ...variableFields,
    defaultValue: maybe(
      'Text, whatever the format is. ******** in replies if the variable is sensitive; sent back, it keeps the stored one.',
    ),
    options: Type.Optional(
      Type.Array(
        Type.Object({
          value: text('The value of the option.'),
          label: maybe('The shown text; if absent, the value.'),
          description: maybe('For people.'),
          default: flag('Whether it is the preselected option.'),
        }),
      ),
    ),
  },
  { title: 'Variable' },
)
export type Variable = Static<typeof Variable>

// Their number and lengths follow from the limit of their bytes, which an import has too.
export const Variables = Type.Object({ variables: Type.Array(Variable) }, { title: 'Variables' })

/** A profile as it is imported; for the document alone, since it is examined in a process of its own. */
export const ClusterProfileImportEntity = Type.Object(
  {
    metadata: Type.Object({
      name: Type.String(),
      description: Type.Optional(Type.String()),
      labels: Type.Optional(Type.Record(Type.String(), Type.String())),
    }),
    spec: Type.Object({
      version: Type.String(),
      template: Type.Object({
        type: Type.Enum(['cluster', 'infra', 'add-on', 'system']),
        cloudType: Type.Optional(Type.String()),
        packs: Type.Array(
          Type.Object({
            name: Type.String(),
            layer: Type.Optional(PackLayer),
            tag: Type.Optional(Type.String()),
            type: Type.Optional(PackType),
            values: Type.Optional(Type.String()),
            version: Type.Optional(Type.String()),
            manifests: Type.Optional(
              Type.Array(
                Type.Object({
                  name: Type.Optional(Type.String()),
                  content: Type.Optional(Type.String()),
                }),
              ),
            ),
          }),
        ),
      }),
      variables: Type.Optional(Type.Array(Variable)),
    }),
  },
  {
    title: 'ClusterProfileImportEntity',
    description: 'A profile as a platform exports it; docs/definition-format.md has all its fields.',
  },
)

const PackRef = Type.Object({
  annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  layer: PackLayer,
  manifests: Type.Optional(Type.Array(Type.Object({ kind: Type.String(), name: Type.String() }))),
  name: Type.String(),
  packUid: text(
    'The pack of this platform that it means now, the newest that fits a tag such as 1.25.x; empty where there is none yet.',
  ),
  registryUid: Type.Optional(Type.String()),
  tag: Type.String(),
  type: PackType,
  values: maybe('For operators and administrators, of one profile only; sensitive values are masked.'),
  version: maybe('The version that a tag such as 1.25.x meant at the export.'),
})

const Template = Type.Object({
  cloudType: Type.String(),
  name: Type.String(),
  packs: Type.Array(PackRef),
  profileVersion: Type.String(),
  type: ProfileType,
  uid: Type.String(),
})

/** A cluster profile in replies. */
export const ClusterProfile = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('ClusterProfile'),
    metadata: ObjectMeta,
    spec: Type.Object({
      draft: Type.Optional(Template),
      published: Type.Optional(Template),
      version: Type.String(),
      versions: Type.Optional(
        Type.Array(Type.Object({ uid: Type.String(), version: Type.String() }), {
          description: 'Versions of this name in the scope; not in lists.',
        }),
      ),
    }),
    status: Type.Object({
      hasUserMacros: Type.Boolean(),
      inUseClusterUids: Type.Array(Type.String()),
      inUseClusters: Type.Array(
        Type.Object({
          kind: Type.String(),
          name: Type.String(),
          projectUid: Type.String(),
          uid: Type.String(),
        }),
      ),
      isPublished: Type.Boolean(),
    }),
  },
  { title: 'ClusterProfile' },
)
export type ClusterProfile = Static<typeof ClusterProfile>
