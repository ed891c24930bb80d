import { Type, type TProperties } from 'typebox'
import { variableFields } from '../definition.ts'

// Schemas of the files of a definition archive, for the reader and for docs/definition.schema.json.
// Other fields are allowed everywhere: exports contain many that have no meaning here.

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const object = <Fields extends TProperties>(fields: Fields, description?: string) =>
  Type.Object(fields, description === undefined ? {} : { description })

/** The version of the format that this code writes, and the highest that it reads. */
export const formatVersion = 1

/** The form of `pathPart`, in words. */
export const pathPartForm =
  'a name of 1 to 128 letters, digits and _ . + -, which begins with a letter, a digit or _'
/** A part of an archive path that comes from a name: no separator, no leading dot. */
export const pathPart = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$/

/** Types of a profile: infrastructure and add-ons in one, infrastructure, add-ons, layers of the host. */
export const profileTypes = ['cluster', 'infra', 'add-on', 'system'] as const

export const DefinitionFile = object(
  {
    formatVersion: Type.Integer({
      minimum: 1,
      maximum: formatVersion,
      description: 'Version of this format: 1.',
    }),
    name: Type.String({ minLength: 1, maxLength: 253, description: 'For people and file names.' }),
    version: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Version of the definition; need not be semver.',
    }),
    description: Type.Optional(Type.String({ maxLength: 4_096 })),
    profiles: Type.Array(
      object({
        uid: Type.String({
          pattern: pathPart.source,
          accepts: pathPartForm,
          description: 'Name of the folder profiles/<uid>.',
        }),
        name: text('Name of the profile, for people.'),
        version: text('Version of the profile, for people.'),
      }),
      { minItems: 1, maxItems: 200, description: 'Every profile of the archive.' },
    ),
    sha256: text(
      'A literal block (|), the last key of the file: one line for each other file of the archive, in the format of sha256sum(1), sorted by the bytes of the names.',
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
            'Name of the folder profiles/<uid>. If missing or empty: 24 hexadecimal digits derived from the name.',
        }),
      ),
      description: maybe('For people.'),
      annotations: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      labels: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      tags: Type.Optional(Type.Array(Type.String())),
    }),
    spec: object({
      version: maybe('Version of the profile.'),
      template: object({
        type: Type.Enum(profileTypes, {
          description:
            'cluster: infrastructure and add-ons in one. system: layers of the host, treated as add-ons.',
        }),
        cloudType: maybe('edge-native.'),
        packs: Type.Array(
          object({
            name: Type.String({ minLength: 1 }),
            tag: maybe(
              'Version of the pack; may end in .x. If missing: the field version, otherwise the version of the only folder of this name.',
            ),
            version: maybe('The version that a tag such as 1.25.x meant at the export.'),
            annotations: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
            layer: maybe('os, k8s, cni, csi or addon.'),
            type: maybe('spectro, helm, manifest or oci.'),
            uid: maybe('Uid of the pack in its registry.'),
            registryUid: maybe('Uid of the registry.'),
            values: maybe('YAML; may contain macros.'),
            manifests: Type.Optional(
              Type.Array(object({ name: maybe('For people.'), content: maybe('Kubernetes YAML.') })),
            ),
          }),
        ),
      }),
      variables: Type.Optional(
        Type.Array(Type.Unknown(), {
          description: 'As in variables.json, which replaces them if it is present.',
        }),
      ),
    }),
  },
  'profiles/<uid>/profile.json, as the platform exports a cluster profile',
)

export const VariableEntry = object({
  name: Type.String({ minLength: 1 }),
  ...variableFields,
  defaultValue: maybe('Text, whatever the format is.'),
  options: Type.Optional(
    Type.Array(
      object({
        value: text('The value of the option.'),
        label: maybe('The shown text; if absent, the value.'),
        description: maybe('For people.'),
        default: flag('Whether it is the preselected option.'),
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
              layer: maybe('The layer that pack has to be in; if absent, any.'),
              minVersion: maybe('The lowest allowed version.'),
              maxVersion: maybe('The highest allowed version.'),
              type: maybe('required, optional, notSupported or upgrade.'),
            }),
          ),
        ),
      }),
    ),
  },
  'packs/<name>-<version>/pack.json',
)

/** packs/<name>-<version>/presets.yaml; if it does not have this shape, there is a warning and the pack has no presets. */
export const PresetsFile = object({
  presets: Type.Array(
    object({
      name: Type.String({ minLength: 1 }),
      displayName: maybe('For people.'),
      group: maybe('Only one preset of a group can be applied.'),
      remove: Type.Optional(Type.Array(text('Dotted path into the values.'))),
      add: maybe('YAML that is merged into the values.'),
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
