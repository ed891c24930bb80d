import type { Variable } from '../../src/definition/definition.ts'
import { compressions, exportedProfile, rawTar, signedMembers } from './tar-bytes.ts'

export interface ArchiveWish {
  readonly version?: string
  readonly variables?: readonly Variable[]
  /** Values of its only pack, in the profile. */
  readonly values?: string
  /** More members, which replace those of the same name. */
  readonly files?: Readonly<Record<string, string | Buffer>>
  readonly compress?: keyof typeof compressions
}

/** A definition without problems: an add-on profile `u1` of one pack, web-shop 1.0. */
export function definitionArchive({
  version = '1.0.0',
  variables = [],
  values = 'replicas: 1\n',
  files = {},
  compress = 'gzip',
}: ArchiveWish = {}): Buffer {
  const pack = { name: 'web-shop', layer: 'addon', tag: '1.0', uid: 'web', type: 'spectro', values }
  const profile = exportedProfile('u1', { type: 'add-on', packs: [pack] }, { version, variables })
  const all = {
    'packs/web-shop-1.0/pack.json': JSON.stringify({ name: 'web-shop', version: '1.0', layer: 'addon' }),
    'packs/web-shop-1.0/values.yaml': 'replicas: 1\n',
    'profiles/u1/profile.json': JSON.stringify(profile),
    ...files,
  }
  return compressions[compress](rawTar(signedMembers(all)))
}
