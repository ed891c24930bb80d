import { Type, type Static } from 'typebox'

// Wire names as the published API spells them; what it does not have, uid, images, problems, diff and so on, is added.

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

const VariableOption = Type.Object({
  value: text('What is chosen; masked when the variable is sensitive.'),
  label: maybe('What is shown; else the value.'),
  description: maybe('For people.'),
  default: flag('Chosen from the start.'),
})

export const Variable = Type.Object(
  {
    name: text('Sent back with its value.'),
    displayName: maybe('For people.'),
    description: maybe('For people.'),
    format: maybe('string, number, boolean, version, ipv4, ipv4cidr, ipv6 or base64, in any case.'),
    inputType: Type.Optional(Type.Enum(['text', 'dropdown', 'multiline'])),
    regex: maybe('RE2.'),
    required: flag('It may not be empty.'),
    hidden: flag('It is not shown.'),
    immutable: flag('It keeps its default.'),
    isSensitive: flag('Its value is never shown.'),
    defaultValue: maybe('Text, whatever the format is; ******** when the variable is sensitive.'),
    options: Type.Optional(Type.Array(VariableOption, { description: 'Of a dropdown.' })),
  },
  { title: 'Variable' },
)
export type Variable = Static<typeof Variable>

const GuessedImage = Type.Object({
  image: text('As it would be pulled, macros in it.'),
  isTagKnown: Type.Boolean({
    description:
      'Whether it has a tag or digest. A chart without one takes its appVersion, which is not known here.',
  }),
})

const PackDependency = Type.Object({
  packName: Type.String(),
  layer: text('Where that pack has to be; empty: anywhere.'),
  minVersion: text('The lowest that fits; empty: any.'),
  maxVersion: text('The highest that fits; empty: any.'),
  type: text('required, optional, notSupported or upgrade.'),
})

const PackPreset = Type.Object({
  name: text('As edgehostctl definition build --preset PACK:NAME takes it.'),
  displayName: text('For people; may be empty.'),
  group: text('Of presets of the same group one can be applied; may be empty.'),
  remove: Type.Array(Type.String(), { description: 'Paths that it takes out of the values.' }),
  add: text('YAML that it puts into the values.'),
})

export const Pack = Type.Object(
  {
    name: Type.String(),
    displayName: maybe('Tells it from the same pack elsewhere in the profile; absent where it has none.'),
    version: Type.String(),
    layer: text('os, k8s, cni, csi or addon; empty where the profile does not say.'),
    values: text('YAML, macros in it: what the profile gives, else what the pack itself has.'),
    logo: text('A data URL (RFC 2397) of an image; empty without one.'),
    dependencies: Type.Optional(
      Type.Array(PackDependency, {
        description: 'What the pack says of other packs; absent where it says nothing.',
      }),
    ),
    presets: Type.Optional(
      Type.Array(PackPreset, {
        description: 'Sets of changes to the values; absent where the pack has none.',
      }),
    ),
    images: Type.Array(Type.String(), {
      description: 'Container images that the pack lists and that its manifests name, as they are written.',
    }),
    guessedImages: Type.Optional(
      Type.Array(GuessedImage, {
        description:
          'Container images that it seems to use: of the values of its charts and manifests, where it lists none, and of manifests that are templates.',
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
const fromVersion = maybe('Of the running one; absent for what is added.')
const toVersion = maybe('Of the incoming one; absent for what is removed.')

export const PackDiff = Type.Object({
  name: Type.String(),
  displayName: maybe('Absent where the pack has none.'),
  change,
  fromVersion,
  toVersion,
  valuesChanged: Type.Boolean(),
  fields: Type.Array(Type.String(), { description: 'What else differs: layer, images, guessedImages.' }),
})
export type PackDiff = Static<typeof PackDiff>

export const VariableDiff = Type.Object({
  name: Type.String(),
  change,
  required: flag('Of the incoming one.'),
  hasDefault: flag('Of the incoming one. One that is required and has no default needs a value.'),
  fields: Type.Array(Type.String(), {
    description: 'What differs, for example defaultValue. A masked default that became another is not seen.',
  }),
})
export type VariableDiff = Static<typeof VariableDiff>

export const ProfileDiff = Type.Object({
  profileUid: text('Of the incoming one; of the running one where it is removed.'),
  profileName: Type.String(),
  change,
  fromVersion,
  toVersion,
  fields: Type.Array(Type.String(), {
    description:
      'What else of the profile differs: profileUid (variables are given under the new one), profileName, profileType.',
  }),
  packs: Type.Array(PackDiff),
  variables: Type.Array(VariableDiff),
})
export type ProfileDiff = Static<typeof ProfileDiff>

export const DefinitionDiff = Type.Object(
  { profiles: Type.Array(ProfileDiff, { description: 'Those that differ in anything to review.' }) },
  { title: 'DefinitionDiff', description: 'What an update would change.' },
)
export type DefinitionDiff = Static<typeof DefinitionDiff>

const Problem = Type.Object({
  code: text('Stable, see docs/definition-problems.md.'),
  severity: Type.Enum(['error', 'warning']),
  place: text('Member of the archive, and where in it.'),
  message: Type.String(),
})

export const ClusterConfigArchiveDetails = Type.Object(
  {
    archiveUploadPath: text('Names the archive in POST cluster, PUT cluster/profiles and validate.'),
    clusterProfileDetails: Type.Array(ClusterProfileDetail),
    uid: maybe('Of the upload.'),
    sha256: maybe('Of the archive, hex.'),
    sizeBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Of the archive.' })),
    fileName: maybe('As it was uploaded.'),
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
    archiveUploadPath: Type.String({ minLength: 1, description: 'As the details of the archive say it.' }),
    metadata: Type.Optional(Type.Object({}, { description: 'Ignored.' })),
    variables: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.String({ minLength: 1 }),
          profileUid: maybe('Needed where more than one profile declares the name.'),
          value: maybe('Text, whatever the format is; empty means not set.'),
        }),
        { maxItems: 4_096, description: 'What is not given is judged by its default.' },
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
        validationFailureReason: text('Empty when it is valid; never holds the value.'),
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

export const AcceptedResponseWithMessage = Type.Object(
  { message: Type.String() },
  { title: 'AcceptedResponseWithMessage' },
)
export type AcceptedResponseWithMessage = Static<typeof AcceptedResponseWithMessage>
