import { Type } from 'typebox'

const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

/** Fields of a variable that the format and the APIs of host and platform share: all but its name, default and options. */
export const variableFields = {
  displayName: maybe('For people.'),
  description: maybe('For people.'),
  format: maybe('string, number, boolean, version, ipv4, ipv4cidr, ipv6 or base64, in any case.'),
  inputType: Type.Optional(Type.Enum(['text', 'dropdown', 'multiline'])),
  regex: maybe('RE2.'),
  required: flag('The value may not be empty.'),
  hidden: flag('The variable is not shown.'),
  immutable: flag('The variable keeps its default.'),
  isSensitive: flag('The value is never shown.'),
}

/**
 * A cluster definition in memory: data only, the same for both archive layouts.
 * Places are paths of members inside the archive, so that an author can find a problem there.
 */
export interface Definition {
  readonly formatVersion: number
  readonly name: string
  readonly version: string
  readonly description: string
  readonly profiles: readonly Profile[]
  /** Pack folders of the archive; a profile refers to them by name and version. */
  readonly packs: readonly Pack[]
}

/** A definition in the audit trail: two of one version may differ. Pure. */
export const labelOfDefinition = ({
  name,
  version,
  sha256,
}: Pick<Definition, 'name' | 'version'> & { readonly sha256: string }): string =>
  `${name} ${version} (${sha256.slice(0, 12)})`

/** The part of a profile that the judgement of variables needs. */
export interface DeclaringProfile {
  /** Place of its profile.json. */
  readonly place: string
  readonly uid: string
  readonly name: string
  readonly variables: readonly Variable[]
}

/** A profile as the platform exports it. */
export interface Profile extends DeclaringProfile {
  readonly version: string
  readonly description: string
  readonly tags: readonly string[]
  /** `cluster`: infrastructure and add-ons in one; `system`: layers of the host, treated as add-ons. */
  readonly type: 'cluster' | 'infra' | 'add-on' | 'system'
  readonly packs: readonly ProfilePack[]
}

/** A reference of a profile to a pack, with the values that the profile gives it. */
export interface ProfilePack {
  readonly name: string
  /** Distinguishes it from other uses of the same pack in the profile; empty if it has none. */
  readonly displayName: string
  /** Version of the pack folder it refers to. If no folder fits: the tag of the profile, which may be empty. */
  readonly tag: string
  readonly layer: string
  readonly type: string
  readonly uid: string
  /** YAML text, with its macros and comments. */
  readonly values: string
  readonly manifests: readonly { readonly name: string; readonly content: string }[]
}

/** A pack folder in the public layout. */
export interface Pack {
  /** Its folder, `packs/<name>-<version>`. */
  readonly place: string
  readonly name: string
  readonly version: string
  readonly displayName: string
  readonly layer: string
  /** Text of values.yaml; undefined if there is no such file. */
  readonly values: string | undefined
  /** Kubernetes YAML: place and text. */
  readonly manifests: readonly { readonly place: string; readonly content: string }[]
  /** Places of chart archives. */
  readonly charts: readonly string[]
  /** Files that pack.json names; a stray one of the folder is not installed. Undefined where it names none: then all are. */
  readonly named: {
    /** Places of chart archives, and of folders with a chart. */
    readonly charts: readonly string[] | undefined
    /** Places of manifests. */
    readonly manifests: readonly string[] | undefined
  }
  /** Place of its logo. */
  readonly logo: string | undefined
  /** `constraints.dependencies` of pack.json. */
  readonly dependencies: readonly PackDependency[]
  /** schema.yaml: rules for its values. */
  readonly schema: { readonly place: string; readonly content: string } | undefined
  /** presets.yaml. */
  readonly presets: readonly Preset[]
}

/** A dependency of a pack on another one. A field that is not set is empty. */
export interface PackDependency {
  readonly packName: string
  readonly layer: string
  readonly minVersion: string
  readonly maxVersion: string
  /** `required`, `optional`, `notSupported` or `upgrade`. */
  readonly type: string
}

/** A named set of changes to the values of a pack. A field that is not set is empty. */
export interface Preset {
  readonly name: string
  readonly displayName: string
  /** Only one preset of a group can be applied. */
  readonly group: string
  /** Dotted paths into the values. */
  readonly remove: readonly string[]
  /** YAML that is merged into the values. */
  readonly add: string
}

/** A value that the profile leaves open. On the wire every value is text. */
export interface Variable {
  readonly name: string
  readonly displayName?: string
  readonly description?: string
  readonly format?: string
  readonly inputType?: 'text' | 'dropdown' | 'multiline'
  readonly regex?: string
  readonly required?: boolean
  readonly hidden?: boolean
  readonly immutable?: boolean
  readonly isSensitive?: boolean
  readonly defaultValue?: string
  readonly options?: readonly {
    readonly value: string
    readonly label?: string
    readonly description?: string
    readonly default?: boolean
  }[]
}

/** An error, or a warning that an operator should know before a deployment. */
export interface Problem {
  /** Stable, UpperCamelCase, for example `PackTwice`. */
  readonly code: string
  /** `error`: the definition cannot be used as it is. */
  readonly severity: 'error' | 'warning'
  /** Member of the archive, with the position in it if known: `profiles/u1/profile.json#spec.variables[2]`, `packs/a-1/values.yaml:12:3`. */
  readonly place: string
  readonly message: string
}

/** A value from a client. Without `profileUid`, it belongs to the only profile that declares the name. */
export interface GivenVariable {
  readonly name: string
  readonly profileUid?: string
  readonly value: string
}

/** Finds the value given to a variable of a profile: with the uid of the profile, otherwise without one. */
export function createGivenTo(given: readonly GivenVariable[]) {
  const values = new Map(given.map((each) => [`${each.profileUid ?? ''}\0${each.name}`, each.value]))
  return ({ uid }: Pick<DeclaringProfile, 'uid'>, name: string): string | undefined =>
    values.get(`${uid}\0${name}`) ?? values.get(`\0${name}`)
}
