import { gzipSync } from 'node:zlib'
import type { Variable } from '../../src/definition/definition.ts'
import { compressions, exportedProfile, rawTar, signedMembers } from './tar-bytes.ts'

/** A pack of a definition for a cluster. */
export interface PackWish {
  readonly name: string
  readonly tag?: string
  readonly layer?: string
  readonly type?: string
  /** Values of the profile. */
  readonly values?: string
  readonly annotations?: Readonly<Record<string, string>>
  /** Manifests of the profile. */
  readonly manifests?: readonly { readonly name: string; readonly content: string }[]
  /** Files of its folder; without them it has none. */
  readonly files?: Readonly<Record<string, string | Buffer>>
  /** Further fields of pack.json. */
  readonly about?: object
}

/** Packs without which no cluster starts; they install nothing. */
export const infrastructure: readonly PackWish[] = [
  { name: 'edge-os', layer: 'os', files: {} },
  { name: 'edge-k8s', tag: '1.34.4', layer: 'k8s', files: {} },
  { name: 'cni', layer: 'cni', files: {} },
]

/** A definition with one profile, `u1`, of type cluster. */
export function clusterDefinition(packs: readonly PackWish[], variables: readonly Variable[] = []): Buffer {
  const profile = exportedProfile(
    'u1',
    {
      type: 'cluster',
      packs: packs.map(
        ({ name, tag = '1.0.0', layer = 'addon', type = 'spectro', values = '', ...rest }) => ({
          ...{ name, tag, layer, type, values, manifests: rest.manifests ?? [] },
          ...(rest.annotations ? { annotations: rest.annotations } : {}),
        }),
      ),
    },
    { variables },
  )
  const folders = packs.flatMap(({ name, tag = '1.0.0', layer = 'addon', files, about }) =>
    files === undefined
      ? []
      : Object.entries({
          'pack.json': JSON.stringify({ name, version: tag, layer, ...about }),
          ...files,
        }).map(([path, content]) => [`packs/${name}-${tag}/${path}`, content] as const),
  )
  const files = { ...Object.fromEntries(folders), 'profiles/u1/profile.json': JSON.stringify(profile) }
  return compressions.gzip(rawTar(signedMembers(files)))
}

/** The archive of a chart, as `helm package` makes it. */
export const chartArchive = (
  name: string,
  files: Readonly<Record<string, string>>,
  version = '1.0.0',
): Buffer =>
  gzipSync(
    rawTar(
      Object.entries({ 'Chart.yaml': `apiVersion: v2\nname: ${name}\nversion: ${version}\n`, ...files }).map(
        ([path, content]) => ({ name: `${name}/${path}`, content }),
      ),
    ),
  )

/** A Deployment with one container. @param image as it is written in YAML */
export const deployment = (image: string, name = 'web'): string =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ${name}}\nspec:\n  template:\n    spec:\n      containers:\n      - name: a\n        image: ${image}\n`
