import { documentPath } from '../../base/program.ts'

/**
 * Every code that a check of a definition can report: its severity, its meaning, and what to do.
 * Documents are generated from this table; codes are stable, texts may improve.
 */
export const definitionCodes = {
  InfrastructureTwice: {
    severity: 'error',
    meaning:
      'More than one profile contains infrastructure (type cluster or infra, or a layer os, k8s, cni, csi).',
    action: 'Keep one of them; a cluster has one operating system and one Kubernetes.',
  },
  LayerMissing: {
    severity: 'error',
    meaning: 'The infrastructure profile has no pack for a layer that every cluster needs: os, k8s or cni.',
    action: 'Add a pack of that layer to the profile.',
  },
  LayerTwice: {
    severity: 'error',
    meaning: 'The infrastructure profile has two packs for os, k8s or cni.',
    action: 'Keep one of them.',
  },
  PackDependencyMissing: {
    severity: 'error',
    meaning:
      'A pack requires another one (constraints.dependencies of its pack.json) that no profile contains.',
    action: 'Add that pack to a profile.',
  },
  PackDependencyVersion: {
    severity: 'error',
    meaning: 'By its pack.json, a pack does not work with the version of another pack in a profile.',
    action: 'Change the version of one of the two packs.',
  },
  PackElsewhere: {
    severity: 'warning',
    meaning:
      'A profile refers to a pack that is not in the archive but may be available elsewhere: a pack of type helm or oci comes from a registry, and archives of the existing layout do not document where they keep packs.',
    action: 'Build the definition again with the folder of that pack, so that its content can be checked.',
  },
  PackMissing: {
    severity: 'error',
    meaning: 'A profile refers to a pack, or to a version of it, that is not in the archive.',
    action: 'Build the definition again with the folder of that pack, or change the version.',
  },
  PackTwice: {
    severity: 'error',
    meaning:
      'The same pack is used twice: in two profiles, or in one profile under the same display name or in a layer os, k8s or cni. Or two folders contain the same pack and version.',
    action:
      'Remove one of them. A profile may use a pack more than once if each has a display name of its own (spectrocloud.com/display-name below pack in its values).',
  },
  PackSchemaInvalid: {
    severity: 'warning',
    meaning: 'schema.yaml of a pack, or a schema in it, is malformed and is not used.',
    action: 'No action is needed; the author of the pack can correct it.',
  },
  PackValueInvalid: {
    severity: 'error',
    meaning:
      'A value of a pack does not match schema.yaml of the pack. It is a warning if the value comes from the pack itself.',
    action: 'Correct the value in the profile.',
  },
  PackUnused: {
    severity: 'warning',
    meaning: 'The archive contains a pack that no profile refers to.',
    action: 'No action is needed; without the pack the archive is smaller.',
  },
  PackVersionMissing: {
    severity: 'error',
    meaning: 'A profile does not name the version of a pack, and more than one version in the archive fits.',
    action: 'Write the version as tag of the pack, or build the definition with one folder of that pack.',
  },
  ProfileMissing: {
    severity: 'error',
    meaning: 'The definition contains no profile.',
    action: 'Build the definition again with at least one profile.',
  },
  ProfileTwice: {
    severity: 'error',
    meaning: 'Two profiles have the same uid.',
    action: 'Remove one of them.',
  },
  VersionInvalid: {
    severity: 'error',
    meaning: 'A version is malformed.',
    action:
      'Begin with a digit, or with v and a digit, and end with a letter or digit; between them, letters, digits and . _ + - are allowed. At most 128 characters follow the v.',
  },
  ValuesNotMapping: {
    severity: 'error',
    meaning: 'Values are not one YAML mapping.',
    action: 'Write them as one document of keys and values.',
  },
  YamlAliasInvalid: {
    severity: 'error',
    meaning: 'An alias (*name) has no anchor before it, or is inside the node that it refers to.',
    action: 'Put the anchor (&name) before the alias, or write the value out.',
  },
  YamlInvalid: {
    severity: 'error',
    meaning: 'A text is not valid YAML: neither YAML 1.2 nor the extensions that Helm and kubectl accept.',
    action: 'Correct the text at the named place.',
  },
  YamlKeyTwice: {
    severity: 'warning',
    meaning:
      'A mapping has the same key twice. Readers differ: most take the last one, some refuse the text.',
    action: 'Remove one of them.',
  },
  YamlTooLarge: {
    severity: 'error',
    meaning: 'The aliases of a document expand to far more values than real files have.',
    action: 'Write the values out, or use fewer aliases.',
  },
  MacroBreaksYaml: {
    severity: 'error',
    meaning: 'The value of a macro would break the YAML around it, or YAML would cut or change the value.',
    action: 'Put the macro in quotes, or choose a value without the named character.',
  },
  MacroCycle: {
    severity: 'error',
    meaning: 'Values of packs refer to each other in a circle.',
    action: 'Write one of the values out.',
  },
  MacroFunctionFailed: {
    severity: 'error',
    meaning: 'A function of a macro refuses its arguments.',
    action: 'Correct the values, or give the macro a default before the function.',
  },
  MacroFunctionUnknown: {
    severity: 'error',
    meaning: 'A macro uses a function that this host does not have.',
    action: `Correct its name, or use one that ${documentPath('definition-format.md')} lists.`,
  },
  MacroInvalid: {
    severity: 'error',
    meaning: 'A macro is malformed.',
    action: 'Write {{ .spectro.var.NAME }}, {{ .spectro.system.NAME }} or {{ .spectro.pack.PACK.PATH }}.',
  },
  MacroPackAmbiguous: {
    severity: 'error',
    meaning:
      'A macro refers to a value of a pack that its profile contains more than once, and the value differs between them.',
    action: 'Write the value out, or give all packs of that name the same value.',
  },
  MacroPathEmpty: {
    severity: 'warning',
    meaning: 'A macro refers to a value that the pack does not have; its value is an empty text.',
    action: 'Correct the path, or give the pack the value.',
  },
  MacroPackUnknown: {
    severity: 'error',
    meaning: 'A macro refers to a pack that no profile of this definition contains.',
    action: 'Correct the name, or add the pack.',
  },
  MacroPathUnknown: {
    severity: 'error',
    meaning: 'A macro refers to a mapping or a list of a pack, which is not a single value.',
    action: 'Correct the path; it must end at a text, a number or a boolean.',
  },
  MacroPlatformOnly: {
    severity: 'warning',
    meaning:
      'A macro refers to a value that only the platform knows, so it stays as it is written. In packs of the layers os, k8s and cni this is an error.',
    action: 'Write the value out, or use a variable of the profile.',
  },
  MacroSystemUnknown: {
    severity: 'error',
    meaning: 'The platform documents no system macro of this name.',
    action: `Use a system macro that ${documentPath('definition-format.md')} lists.`,
  },
  MacroTooLong: {
    severity: 'error',
    meaning:
      'The values of macros are too long: values of packs contain each other many times, or texts are too large.',
    action: 'Use fewer references, or write shorter values.',
  },
  MacroTypeChanged: {
    severity: 'warning',
    meaning:
      'The value of a macro changes its type: a number or boolean in double quotes becomes text, or text without quotes becomes a number, boolean or null.',
    action: 'Remove or add the quotes, depending on which type is expected.',
  },
  MacroUnevaluated: {
    severity: 'warning',
    meaning:
      'A macro is inside a condition, a loop or another expression of a template, which this host does not evaluate.',
    action: 'Write the macro alone, or with functions only.',
  },
  MacroUnset: {
    severity: 'error',
    meaning:
      'A macro has no value: a required variable is not set, or a fact of the cluster is not known yet.',
    action: 'Give the variable a value.',
  },
  VariableDefaultInvalid: {
    severity: 'error',
    meaning:
      'The default of a variable, or one of its options, does not match its own format, regex or options.',
    action: 'Correct the default or the rule.',
  },
  VariableDefaultMasked: {
    severity: 'warning',
    meaning:
      'The default of a sensitive variable, or one of its options, consists of stars only: the export masked it. It counts as not set.',
    action: 'Write the value into the exported profile, or give it when the cluster is created.',
  },
  VariableDefaultMissing: {
    severity: 'error',
    meaning: 'A variable that cannot be filled in (immutable, or hidden and required) has no default.',
    action: 'Add defaultValue.',
  },
  VariableFormatUnknown: {
    severity: 'error',
    meaning: 'The format of a variable is unknown.',
    action: 'Use string, number, boolean, version, ipv4, ipv4cidr, ipv6 or base64.',
  },
  VariableInputTypeUnknown: {
    severity: 'error',
    meaning: 'The inputType of a variable is unknown.',
    action: 'Use text, dropdown or multiline.',
  },
  VariableNameInvalid: {
    severity: 'error',
    meaning: 'A variable has no name, or one that cannot be used in a macro.',
    action: 'Give it a name without spaces, braces and |, of at most 256 characters.',
  },
  VariableOptionsInvalid: {
    severity: 'error',
    meaning:
      'A dropdown has no options, a duplicate option, an option without value, or more than one default.',
    action: 'Correct its options.',
  },
  VariableOptionsUnused: {
    severity: 'warning',
    meaning: 'A variable has options but is not a dropdown, so the options are ignored.',
    action: 'Set inputType to dropdown, or remove the options.',
  },
  VariablePatternInvalid: {
    severity: 'error',
    meaning:
      'The regex of a variable is refused by RE2 or is too large. The limits are 1,024 characters, 2,000 instructions, and 20,000 instructions for all patterns of the definition.',
    action:
      'Write it in RE2 syntax (no look-around, no back references). If it is too large, use smaller repetitions: x{0,999} counts 999 times x.',
  },
  VariableTwice: {
    severity: 'error',
    meaning: 'A profile declares the same variable twice.',
    action: 'Remove one of them.',
  },
  VariableUndeclared: {
    severity: 'error',
    meaning: 'Values or manifests use a variable that their profile does not declare.',
    action: 'Declare it in the profile, or correct the name.',
  },
  VariableUnused: {
    severity: 'warning',
    meaning: 'A profile declares a variable that its values and manifests do not use.',
    action: 'No action is needed; if the variable should be used, check the spelling of its name there.',
  },
  VariablesTooLarge: {
    severity: 'error',
    meaning:
      'The definition has more than 2,000 variables, or their texts are longer than 4 MiB in total. The variables are then not checked.',
    action: 'Declare fewer variables, or put long texts into the values of packs.',
  },
  TooManyProblems: {
    severity: 'error',
    meaning: 'Not all problems are reported. This is a warning if all omitted problems are warnings.',
    action: 'Correct the reported problems and check again.',
  },
} as const satisfies Record<string, { severity: 'error' | 'warning'; meaning: string; action: string }>

export type DefinitionCode = keyof typeof definitionCodes
