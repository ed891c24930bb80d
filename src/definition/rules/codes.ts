/**
 * Every code a check of a definition can give: how bad it is, what it means, and what to do.
 * Documents are generated from this table; codes are stable, texts may improve.
 */
export const definitionCodes = {
  InfrastructureTwice: {
    severity: 'error',
    meaning:
      'More than one profile holds infrastructure (type cluster or infra, or a layer os, k8s, cni, csi).',
    action: 'Keep one of them; a cluster has one operating system and one Kubernetes.',
  },
  LayerMissing: {
    severity: 'error',
    meaning: 'The infrastructure profile has no pack for a layer that each cluster needs: os, k8s and cni.',
    action: 'Add a pack of that layer to the profile.',
  },
  LayerTwice: {
    severity: 'error',
    meaning: 'The infrastructure profile has two packs for os, k8s or cni.',
    action: 'Keep one of them.',
  },
  PackDependencyMissing: {
    severity: 'error',
    meaning: 'A pack requires another one (constraints.dependencies of its pack.json) that no profile holds.',
    action: 'Add that pack to a profile.',
  },
  PackDependencyVersion: {
    severity: 'error',
    meaning: 'A pack says that it does not work with a version of another pack that a profile holds.',
    action: 'Take a version of either of them that fits.',
  },
  PackElsewhere: {
    severity: 'warning',
    meaning:
      'A profile refers to a pack that is not in the archive and may be elsewhere: a pack of type helm or oci comes from a registry, and where archives of the existing layout keep packs is not known.',
    action: 'Build the definition again with the folder of that pack, so that what it holds can be checked.',
  },
  PackMissing: {
    severity: 'error',
    meaning: 'A profile refers to a pack, or to a version of it, that is not in the archive.',
    action: 'Build the definition again with the folder of that pack, or change the version.',
  },
  PackTwice: {
    severity: 'error',
    meaning:
      'The same pack is named twice, in two profiles, or in one under the same display name or in a layer os, k8s or cni; or two folders hold the same pack and version.',
    action:
      'Remove one of them. In one profile, a display name for each (spectrocloud.com/display-name below pack in its values) lets a pack stand more than once.',
  },
  PackSchemaInvalid: {
    severity: 'warning',
    meaning: 'schema.yaml of a pack, or a schema in it, cannot be read; nothing is checked by it.',
    action: 'Nothing has to be done; the author of the pack can correct it.',
  },
  PackValueInvalid: {
    severity: 'error',
    meaning:
      'A value of a pack is not what schema.yaml of the pack says. A warning where it is the value of the pack itself.',
    action: 'Correct the value in the profile.',
  },
  PackUnused: {
    severity: 'warning',
    meaning: 'The archive holds a pack that no profile refers to.',
    action: 'Nothing has to be done; without it the archive is smaller.',
  },
  PackVersionMissing: {
    severity: 'error',
    meaning:
      'A profile does not say which version of a pack it means, and the archive holds more than one that fits.',
    action: 'Write the version as tag of the pack, or build the definition with one folder of that pack.',
  },
  ProfileMissing: {
    severity: 'error',
    meaning: 'The definition holds no profile.',
    action: 'Build the definition again with at least one profile.',
  },
  ProfileTwice: {
    severity: 'error',
    meaning: 'Two profiles have the same uid.',
    action: 'Remove one of them.',
  },
  VersionInvalid: {
    severity: 'error',
    meaning: 'A version is not well formed.',
    action:
      'Write digits first, with or without a v, then letters, digits and . _ + -, at most 128 characters.',
  },
  ValuesNotMapping: {
    severity: 'error',
    meaning: 'Values are not one YAML mapping.',
    action: 'Write them as one document of keys and values.',
  },
  YamlAliasInvalid: {
    severity: 'error',
    meaning: 'An alias (*name) has no anchor before it, or stands inside of what it repeats.',
    action: 'Put the anchor (&name) before the alias, or write the value out.',
  },
  YamlInvalid: {
    severity: 'error',
    meaning: 'A text is not valid YAML: neither 1.2 nor what Helm and kubectl take beyond it.',
    action: 'Correct it at the place that is named.',
  },
  YamlKeyTwice: {
    severity: 'warning',
    meaning:
      'A mapping has the same key twice. Readers differ: most take the last one, some refuse the text.',
    action: 'Remove one of them.',
  },
  YamlTooLarge: {
    severity: 'error',
    meaning: 'The aliases of a document stand for more values than a person would write.',
    action: 'Write the values out, or repeat less.',
  },
  MacroBreaksYaml: {
    severity: 'error',
    meaning: 'The value of a macro would break the YAML around it or be cut or changed by it.',
    action: 'Put the macro in quotes, or choose a value without the character that is named.',
  },
  MacroCycle: {
    severity: 'error',
    meaning: 'Values of packs refer to each other in a circle.',
    action: 'Write one of the values out.',
  },
  MacroFunctionFailed: {
    severity: 'error',
    meaning: 'A function of a macro cannot do its work with the values it is given.',
    action: 'Correct the values, or give the macro a default before the function.',
  },
  MacroFunctionUnknown: {
    severity: 'error',
    meaning: 'A macro uses a function that this host does not have.',
    action: 'Correct its name, or use one that docs/definition-format.md lists.',
  },
  MacroInvalid: {
    severity: 'error',
    meaning: 'A macro is not written as macros are.',
    action: 'Write {{ .spectro.var.NAME }}, {{ .spectro.system.NAME }} or {{ .spectro.pack.PACK.PATH }}.',
  },
  MacroPackAmbiguous: {
    severity: 'error',
    meaning:
      'A macro refers to a value of a pack that stands in its profile more than once, and not all of them have the same value.',
    action: 'Write the value out, or give all packs of that name the same one.',
  },
  MacroPathEmpty: {
    severity: 'warning',
    meaning: 'A macro refers to a value that the pack does not have; it stands for nothing, an empty text.',
    action: 'Correct the path, or give the pack the value.',
  },
  MacroPackUnknown: {
    severity: 'error',
    meaning: 'A macro refers to a pack that no profile of this definition holds.',
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
      'A macro asks for what only the platform knows, so it stays as it is written. In packs of the layers os, k8s and cni this is an error.',
    action: 'Write the value out, or use a variable of the profile.',
  },
  MacroSystemUnknown: {
    severity: 'error',
    meaning: 'No system macro of this name is published.',
    action: 'Use one of those that docs/definition-format.md lists.',
  },
  MacroTooLong: {
    severity: 'error',
    meaning: 'What macros stand for is longer than a person would write: values that repeat each other.',
    action: 'Refer to less, or write shorter values.',
  },
  MacroTypeChanged: {
    severity: 'warning',
    meaning:
      'A macro changes its type: a number or boolean in double quotes becomes text, or a text without quotes a number, boolean or null.',
    action: 'Take the quotes away, or add them, as the reader of the value expects it.',
  },
  MacroUnevaluated: {
    severity: 'warning',
    meaning:
      'A macro stands inside of a condition, a loop or another expression of a template, which this host does not evaluate.',
    action: 'Write the macro by itself, or with functions only.',
  },
  MacroUnset: {
    severity: 'error',
    meaning: 'A macro has no value: a required variable without one, or a fact of the cluster not known yet.',
    action: 'Give the variable a value.',
  },
  VariableDefaultInvalid: {
    severity: 'error',
    meaning:
      'The default of a variable, or one of its options, is refused by its own format, regex or options.',
    action: 'Correct the default or the rule.',
  },
  VariableDefaultMasked: {
    severity: 'warning',
    meaning:
      'The default of a sensitive variable, or one of its options, is nothing but stars: the export masked it. It counts as not set.',
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
    meaning: 'A variable has no name, or one that no macro can hold.',
    action: 'Give it a name without spaces, braces and |, of at most 256 characters.',
  },
  VariableOptionsInvalid: {
    severity: 'error',
    meaning: 'A dropdown has no options, an option twice or without value, or more than one default.',
    action: 'Correct its options.',
  },
  VariableOptionsUnused: {
    severity: 'warning',
    meaning: 'A variable has options but is no dropdown, so that any value is taken.',
    action: 'Set inputType to dropdown, or remove the options.',
  },
  VariablePatternInvalid: {
    severity: 'error',
    meaning:
      'The regex of a variable is refused by RE2, or is too large: more than 1,024 characters, 2,000 instructions, or 20,000 together with those before it.',
    action:
      'Write it in RE2 syntax (no look-around, no back references); where it is too large, repeat less: x{0,999} is 999 times x.',
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
    meaning: 'A profile declares a variable that none of its values and manifests use.',
    action: 'Nothing has to be done; check the spelling of the name where it should be used.',
  },
  VariablesTooLarge: {
    severity: 'error',
    meaning:
      'The variables of the definition are more than 2,000, or their texts together longer than 4 MiB. They are not checked one by one then.',
    action: 'Declare fewer variables, or put long texts into the values of packs.',
  },
  TooManyProblems: {
    severity: 'error',
    meaning:
      'There are more problems than are told. Where all that are not told are warnings, this is one too.',
    action: 'Correct those that are told and check again.',
  },
} as const satisfies Record<string, { severity: 'error' | 'warning'; meaning: string; action: string }>

export type DefinitionCode = keyof typeof definitionCodes
