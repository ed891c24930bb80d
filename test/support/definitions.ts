import type { Definition, Pack, Profile, ProfilePack, Variable } from '../../src/definition/definition.ts'
import { checkDefinition } from '../../src/definition/rules/check.ts'
import { createImageFinder, type ImageFinder } from '../../src/definition/rules/images.ts'

/** A pack of a profile; its folder is made by `definitionOf`. */
export const profilePack = (name: string, values = '', rest: Partial<ProfilePack> = {}): ProfilePack => ({
  name,
  displayName: '',
  tag: '1.0.0',
  layer: 'addon',
  type: 'spectro',
  uid: `uid-${name}`,
  values,
  manifests: [],
  ...rest,
})

export const profileOf = (
  packs: readonly ProfilePack[],
  variables: readonly Variable[] = [],
  rest: Partial<Profile> = {},
): Profile => ({
  place: `profiles/${rest.uid ?? 'u1'}/profile.json`,
  uid: 'u1',
  name: 'first',
  version: '1.0.0',
  description: '',
  tags: [],
  type: 'add-on',
  packs,
  variables,
  ...rest,
})

/** The fields of a variable whose value is chosen from these options. */
export const dropdown = (...values: readonly string[]): Partial<Variable> => ({
  inputType: 'dropdown',
  options: values.map((value) => ({ value })),
})

export const packOf = (name: string, rest: Partial<Pack> = {}): Pack => ({
  place: `packs/${name}-${rest.version ?? '1.0.0'}`,
  name,
  version: '1.0.0',
  displayName: name,
  layer: 'addon',
  values: undefined,
  manifests: [],
  charts: [],
  named: { charts: undefined, manifests: undefined },
  logo: undefined,
  dependencies: [],
  schema: undefined,
  presets: [],
  ...rest,
})

/** A definition of profiles, with an empty folder for each pack unless others are given. */
export const definitionOf = (profiles: readonly Profile[], packs?: readonly Pack[]): Definition => ({
  formatVersion: 1,
  name: 'test',
  version: '1.0.0',
  description: '',
  profiles,
  packs:
    packs ??
    profiles.flatMap((profile) => profile.packs.map(({ name, tag }) => packOf(name, { version: tag }))),
})

/** The layers that an infrastructure profile needs. */
export const infrastructurePacks: readonly ProfilePack[] = [
  profilePack('edge-native-byoi', 'a: 1\n', { layer: 'os' }),
  profilePack('edge-k3s', 'a: 1\n', { layer: 'k8s', tag: '1.33.3' }),
  profilePack('cni-calico', 'a: 1\n', { layer: 'cni' }),
]

/** The images that a check finds. */
export function imagesIn(definition: Definition): ImageFinder['imagesOf'] {
  const { onDocument, imagesOf } = createImageFinder()
  checkDefinition(definition, { onDocument })
  return imagesOf
}
