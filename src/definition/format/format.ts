import { Type, type TProperties } from 'typebox'

// The files of a definition archive: what is checked when one is read, and docs/definition.schema.json.
// Fields that are not named are allowed everywhere: exports carry many that mean nothing here.

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const object = <Fields extends TProperties>(fields: Fields, description?: string) =>
  Type.Object(fields, description === undefined ? {} : { description })

/** The version of the format that this code writes, and the highest that it reads. */
export const formatVersion = 1

/** What `pathPart` takes, in words. */
export const pathPartForm =
  'a name of 1 to 128 letters, digits and _ . + -, which begins with a letter, a digit or _'
/** A part of a path of the archive that comes from a name: no separator, no dot in front. */
export const pathPart = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$/

/** What a profile may be: infrastructure and add-ons in one, infrastructure, add-ons, layers of the host. */
export const profileTypes = ['cluster', 'infra', 'add-on', 'system'] as const

export const DefinitionFile = object(
  {
    formatVersion: Type.Integer({ minimum: 1, maximum: formatVersion, description: 'Of this format: 1.' }),
    name: Type.String({ minLength: 1, maxLength: 253, description: 'For people and file names.' }),
    version: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Of the definition; need not be semver.',
    }),
    description: Type.Optional(Type.String({ maxLength: 4_096 })),
    profiles: Type.Array(
      object({
        uid: Type.String({
          pattern: pathPart.source,
          accepts: pathPartForm,
          description: 'Names the folder profiles/<uid>.',
        }),
        name: text('Of the profile, for people.'),
        version: text('Of the profile, for people.'),
      }),
      { minItems: 1, maxItems: 200, description: 'Every profile of the archive.' },
    ),
    sha256: text(
      'A literal block (|), the last key of the file: a line for each other file of the archive, as sha256sum(1) writes and checks it, sorted by the bytes of the names.',
    ),
  },
  'definition.yaml',
)

export const ProfileFile = object(
  {
    metadata: object({
      name: Type.String({ minLength: 1 }),
      uid: Type.Optional(
        Type.String({
          pattern: `^(?:${pathPart.source.slice(1, -1)})?$`,
          accepts: pathPartForm,
          description:
            'Names the folder profiles/<uid>. Where it is missing or empty: 24 hexadecimal digits that follow from the name.',
        }),
      ),
      description: maybe('For people.'),
      annotations: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      labels: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      tags: Type.Optional(Type.Array(Type.String())),
    }),
    spec: object({
      version: maybe('Of the profile.'),
      template: object({
        type: Type.Enum(profileTypes, {
          description:
            'cluster: infrastructure and add-ons in one. system: layers of the host, as add-ons are.',
        }),
        cloudType: maybe('edge-native.'),
        packs: Type.Array(
          object({
            name: Type.String({ minLength: 1 }),
            tag: maybe(
              'Version of the pack; may end in .x. Where it is missing: version, else that of the one folder of this name.',
            ),
            version: maybe('The version that a tag such as 1.25.x stood for.'),
            annotations: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
            layer: maybe('os, k8s, cni, csi or addon.'),
            type: maybe('spectro, helm, manifest or oci.'),
            uid: maybe('Of the pack in its registry.'),
            registryUid: maybe('Of the registry.'),
            values: maybe('YAML, macros in it.'),
            manifests: Type.Optional(
              Type.Array(object({ name: maybe('For people.'), content: maybe('Kubernetes YAML.') })),
            ),
          }),
        ),
      }),
      variables: Type.Optional(
        Type.Array(Type.Unknown(), { description: 'As in variables.json, which counts where it is there.' }),
      ),
    }),
  },
  'profiles/<uid>/profile.json, as the platform exports a cluster profile',
)

export const VariableEntry = object({
  name: Type.String({ minLength: 1 }),
  displayName: maybe('For people.'),
  description: maybe('For people.'),
  format: maybe('string, number, boolean, version, ipv4, ipv4cidr, ipv6 or base64, in any case.'),
  inputType: Type.Optional(Type.Enum(['text', 'dropdown', 'multiline'])),
  regex: maybe('RE2.'),
  required: flag('It may not be empty.'),
  hidden: flag('It is not shown.'),
  immutable: flag('It keeps its default.'),
  isSensitive: flag('Its value is never shown.'),
  defaultValue: maybe('Text, whatever the format is.'),
  options: Type.Optional(
    Type.Array(
      object({
        value: text('What is chosen.'),
        label: maybe('What is shown; else the value.'),
        description: maybe('For people.'),
        default: flag('Chosen from the start.'),
      }),
    ),
  ),
})

export const VariablesFile = object({ variables: Type.Array(VariableEntry) }, 'profiles/<uid>/variables.json')

export const PackFile = object(
  {
    name: Type.String({ minLength: 1 }),
    version: Type.String({ minLength: 1, description: 'Need not be semver.' }),
    displayName: maybe('For people.'),
    layer: text('os, k8s, cni, csi or addon.'),
    charts: Type.Optional(Type.Array(text('Path in the folder of the pack.'))),
    kubeManifests: Type.Optional(Type.Array(text('Path in the folder of the pack.'))),
    constraints: Type.Optional(
      object({
        dependencies: Type.Optional(
          Type.Array(
            object({
              packName: Type.String({ minLength: 1 }),
              layer: maybe('Where it has to be; anywhere without it.'),
              minVersion: maybe('The lowest that fits.'),
              maxVersion: maybe('The highest that fits.'),
              type: maybe('required, optional, notSupported or upgrade.'),
            }),
          ),
        ),
      }),
    ),
  },
  'packs/<name>-<version>/pack.json',
)

/** packs/<name>-<version>/presets.yaml; what is not of this shape is a warning, and the pack has no presets. */
export const PresetsFile = object({
  presets: Type.Array(
    object({
      name: Type.String({ minLength: 1 }),
      displayName: maybe('For people.'),
      group: maybe('Of which one preset can be applied.'),
      remove: Type.Optional(Type.Array(text('Dotted path into the values.'))),
      add: maybe('YAML that is put into the values.'),
    }),
  ),
})

/** docs/definition.schema.json: one schema for each kind of file. */
export const formatDocument = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Cluster definition archive',
  description:
    'The files of a definition archive; see definition-format.md. definition.yaml is validated by this schema itself.',
  $ref: '#/$defs/definition',
  $defs: { definition: DefinitionFile, profile: ProfileFile, variables: VariablesFile, pack: PackFile },
}
