/**
 * A cluster definition as it stands in memory: data only, whichever archive layout it came from.
 * Places are paths of members inside the archive, so that a problem can be found there.
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

/** A profile as far as its variables go. */
export interface DeclaringProfile {
  /** Of its profile.json. */
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
  /** `cluster`: infrastructure and add-ons in one; `system`: layers of the host, which are as add-ons are. */
  readonly type: 'cluster' | 'infra' | 'add-on' | 'system'
  readonly packs: readonly ProfilePack[]
}

/** What a profile says of a pack: which one, and the values it is given. */
export interface ProfilePack {
  readonly name: string
  /** Tells it from the same pack elsewhere in the profile; empty where it has none. */
  readonly displayName: string
  /** Version of the folder it means. Where no folder fits: what the profile says, empty where it says none. */
  readonly tag: string
  readonly layer: string
  readonly type: string
  readonly uid: string
  /** YAML text, macros and comments in it. */
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
  /** Text of values.yaml; undefined without one. */
  readonly values: string | undefined
  /** Kubernetes YAML, place and text. */
  readonly manifests: readonly { readonly place: string; readonly content: string }[]
  /** Places of chart archives. */
  readonly charts: readonly string[]
  /** Place of its logo. */
  readonly logo: string | undefined
  /** `constraints.dependencies` of pack.json. */
  readonly dependencies: readonly PackDependency[]
  /** schema.yaml: what its values have to be. */
  readonly schema: { readonly place: string; readonly content: string } | undefined
  /** presets.yaml. */
  readonly presets: readonly Preset[]
}

/** What a pack says of another one. A field that is not set is empty. */
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
  /** Of presets of the same group one can be applied. */
  readonly group: string
  /** Dotted paths into the values. */
  readonly remove: readonly string[]
  /** YAML that is put into the values. */
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

/** Something that is wrong, or that an operator should know before a deployment. */
export interface Problem {
  /** Stable, UpperCamelCase, for example `PackTwice`. */
  readonly code: string
  /** `error`: the definition cannot be used as it is. */
  readonly severity: 'error' | 'warning'
  /** Member of the archive, and where in it where that is known: `profiles/u1/profile.json#spec.variables[2]`, `packs/a-1/values.yaml:12:3`. */
  readonly place: string
  readonly message: string
}
