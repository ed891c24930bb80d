import { Type, type Static } from 'typebox'
import { ignored } from '../base/field-stance.ts'
import { variableFields } from './definition.ts'

// Wire names as the published API spells them. The fields uid, images, problems, diff and some others are additions of ours.

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

const VariableOption = Type.Object({
  value: text('The value of the option; masked if the variable is sensitive.'),
  label: maybe('The shown text; if absent, the value.'),
  description: maybe('For people.'),
  default: flag('Whether it is the preselected option.'),
})

export const Variable = Type.Object(
  {
    name: text('Sent back with the value.'),
    ...variableFields,
    defaultValue: maybe('Text, whatever the format is; ******** if the variable is sensitive.'),
    value: maybe(
      'The value where none is given: the default, or the preselected option; masked likewise, and absent where there is none.',
    ),
    options: Type.Optional(Type.Array(VariableOption, { description: 'Options of a dropdown.' })),
  },
  { title: 'Variable' },
)
export type Variable = Static<typeof Variable>

const GuessedImage = Type.Object({
  image: text('As it would be pulled; may contain macros.'),
  isTagKnown: Type.Boolean({
    description:
      'Whether it has a tag or digest. A chart without one uses its appVersion, which is not known here.',
  }),
})

const PackDependency = Type.Object({
  packName: Type.String(),
  layer: text('The layer that pack has to be in; empty: any.'),
  minVersion: text('The lowest allowed version; empty: any.'),
  maxVersion: text('The highest allowed version; empty: any.'),
  type: text('required, optional, notSupported or upgrade.'),
})

const PackPreset = Type.Object({
  name: text('NAME in edgehostctl definition build --preset PACK:NAME.'),
  displayName: text('For people; may be empty.'),
  group: text('Only one preset of a group can be applied; may be empty.'),
  remove: Type.Array(Type.String(), { description: 'Paths that it removes from the values.' }),
  add: text('YAML that it merges into the values.'),
})

export const Pack = Type.Object(
  {
    name: Type.String(),
    displayName: maybe(
      'Distinguishes it from other uses of the same pack in the profile; absent if it has none.',
    ),
    version: Type.String(),
    layer: text('os, k8s, cni, csi or addon; empty if the profile names none.'),
    values: text('YAML with macros: the values of the profile or, if it has none, of the pack folder.'),
    logo: text('A data URL (RFC 2397) of an image; empty if there is none.'),
    dependencies: Type.Optional(
      Type.Array(PackDependency, {
        description: 'Other packs that the pack needs or excludes; absent if there are none.',
      }),
    ),
    presets: Type.Optional(
      Type.Array(PackPreset, {
        description: 'Sets of changes to the values; absent if the pack has none.',
      }),
    ),
    images: Type.Array(Type.String(), {
      description: 'Container images that the pack lists or its manifests name, as they are written there.',
    }),
    guessedImages: Type.Optional(
      Type.Array(GuessedImage, {
        description:
          'Container images that the pack seems to use: from the values of its charts and manifests, if it lists no images, and from manifests that are templates.',
      }),
    ),
  },
  { title: 'Pack' },
)
export type Pack = Static<typeof Pack>

export const ClusterProfileDetail = Type.Object(
  {
    profileUid: Type.String(),
    profileName: Type.String(),
    profileVersion: Type.String(),
    profileType: text('cluster (infrastructure and add-ons in one), infra, add-on or system.'),
    profileDescription: Type.String(),
    profileTags: text('Separated by commas.'),
    packs: Type.Array(Pack),
    variables: Type.Array(Variable),
  },
  { title: 'ClusterProfileDetail' },
)
export type ClusterProfileDetail = Static<typeof ClusterProfileDetail>

const change = Type.Enum(['added', 'removed', 'changed'])
const fromVersion = maybe('The running version; absent if added.')
const toVersion = maybe('The incoming version; absent if removed.')

export const PackDiff = Type.Object({
  name: Type.String(),
  displayName: maybe('Absent if the pack has none.'),
  change,
  fromVersion,
  toVersion,
  valuesChanged: Type.Boolean(),
  fields: Type.Array(Type.String(), {
    description: 'Other fields that differ: layer, images, guessedImages.',
  }),
})
export type PackDiff = Static<typeof PackDiff>

export const VariableDiff = Type.Object({
  name: Type.String(),
  change,
  required: flag('Whether the incoming variable is required.'),
  hasDefault: flag(
    'Whether the incoming variable has a default. If it is required and has none, it needs a value.',
  ),
  fields: Type.Array(Type.String(), {
    description: 'Fields that differ, for example defaultValue. A change of a masked default is not seen.',
  }),
})
export type VariableDiff = Static<typeof VariableDiff>

export const ProfileDiff = Type.Object({
  profileUid: text('Of the incoming profile; of the running one if it is removed.'),
  profileName: Type.String(),
  change,
  fromVersion,
  toVersion,
  fields: Type.Array(Type.String(), {
    description:
      'Other fields of the profile that differ: profileUid (variables are given under the new one), profileName, profileType.',
  }),
  packs: Type.Array(PackDiff),
  variables: Type.Array(VariableDiff),
})
export type ProfileDiff = Static<typeof ProfileDiff>

export const DefinitionDiff = Type.Object(
  { profiles: Type.Array(ProfileDiff, { description: 'Profiles with differences to review.' }) },
  { title: 'DefinitionDiff', description: 'Changes by an update.' },
)
export type DefinitionDiff = Static<typeof DefinitionDiff>

const Problem = Type.Object({
  code: text('Stable, see docs/definition-problems.md.'),
  severity: Type.Enum(['error', 'warning']),
  place: text('Member of the archive and, if known, the position in it.'),
  message: Type.String(),
})

export const ClusterConfigArchiveDetails = Type.Object(
  {
    archiveUploadPath: text('Identifies the archive in POST cluster, PUT cluster/profiles and validate.'),
    clusterProfileDetails: Type.Array(ClusterProfileDetail),
    uid: maybe('Of the upload.'),
    sha256: maybe('Of the archive, hex.'),
    sizeBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Of the archive.' })),
    fileName: maybe('As it was uploaded; the name of the content bundle if it came in one.'),
    uploadedAt: Type.Optional(Type.String({ format: 'date-time' })),
    problems: Type.Optional(
      Type.Array(Problem, { description: 'Warnings; an archive with errors is not accepted.' }),
    ),
    diff: Type.Optional(DefinitionDiff),
  },
  { title: 'ClusterConfigArchiveDetails' },
)
export type ClusterConfigArchiveDetails = Static<typeof ClusterConfigArchiveDetails>

export const ValidateVariables = Type.Object(
  {
    archiveUploadPath: maybe(
      'From the details of the archive. Without it: the definition that waits as an update, otherwise the uploaded one, otherwise the one of the host.',
    ),
    metadata: Type.Optional(Type.Object({}, ignored('no cluster is needed to judge values'))),
    variables: Type.Optional(
      Type.Array(
        Type.Object({
          name: maybe('A value without one belongs to no variable, and is not valid.'),
          profileUid: maybe('Needed if more than one profile declares the name.'),
          value: maybe('Text, whatever the format is; empty means not set.'),
        }),
        { maxItems: 4_096, description: 'A variable that is not given is judged by its default.' },
      ),
    ),
  },
  { title: 'ValidateVariables' },
)
export type ValidateVariables = Static<typeof ValidateVariables>

export const ValidateVariablesResponse = Type.Object(
  {
    variables: Type.Array(
      Type.Object({
        name: Type.String(),
        profileUid: Type.String(),
        profileName: Type.String(),
        isValid: Type.Boolean(),
        regex: Type.String(),
        validationFailureReason: text('Empty if the value is valid; never contains the value.'),
      }),
    ),
  },
  { title: 'ValidateVariablesResponse' },
)
export type ValidateVariablesResponse = Static<typeof ValidateVariablesResponse>

export const UploadResponse = Type.Object(
  {
    message: Type.String(),
    uploadPath: text('Sent back as archiveUploadPath.'),
    uid: maybe('Of the upload.'),
  },
  { title: 'UploadResponse' },
)
export type UploadResponse = Static<typeof UploadResponse>
