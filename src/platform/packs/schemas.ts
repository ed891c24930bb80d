import { Type, type Static } from 'typebox'
import { ObjectMeta } from '../schemas.ts'

const text = (description: string) => Type.String({ description })
/** Layer and type of a pack in a profile: an export may have others, which are shown as they are. */
export const PackLayer = text('kernel, os, k8s, cni, csi or addon; empty where the profile names none.')
export const PackType = text('spectro, helm, manifest or oci.')
export const ProfileType = text('cluster, infra, add-on or system.')
const common = {
  addonSubType: text('Of pack.json; empty where it has none.'),
  addonType: text('Of pack.json; empty where it has none.'),
  cloudTypes: Type.Array(Type.String()),
  displayName: Type.String(),
  layer: text('os, k8s, cni, csi or addon.'),
  name: Type.String(),
}

/** A pack in lists, without its values. */
export const PackSummary = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('Pack'),
    metadata: ObjectMeta,
    spec: Type.Object({
      ...common,
      annotations: Type.Record(Type.String(), Type.String()),
      digest: text(
        'sha256: and the SHA-256 of the sums of its files in the format of sha256sum(1), sorted by name: the same however the folder was packed.',
      ),
      eol: Type.String(),
      group: Type.String(),
      manifests: Type.Array(Type.Object({ kind: Type.String(), name: Type.String() })),
      sizeBytes: Type.Integer({ description: 'Of all its files.' }),
      type: Type.Literal('spectro'),
      version: Type.String(),
    }),
    status: Type.Object({}),
  },
  { title: 'PackSummary' },
)
export type PackSummary = Static<typeof PackSummary>

const Preset = Type.Object({
  add: text('YAML that is merged into the values.'),
  displayName: Type.String(),
  group: text('Only one preset of a group can be applied.'),
  name: Type.String(),
  remove: Type.Array(Type.String(), { description: 'Dotted paths into the values.' }),
})

/** One pack, with its values. */
export const PackTagEntity = Type.Object(
  {
    ...common,
    logoUrl: text('A data URL; empty where the pack has no logo that can be shown.'),
    packValues: Type.Array(
      Type.Object({
        annotations: Type.Record(Type.String(), Type.String()),
        dependencies: Type.Array(
          Type.Object({ name: Type.String(), version: text('The lowest allowed version; empty: any.') }),
        ),
        packUid: Type.String(),
        presets: Type.Array(Preset),
        readme: text('README.md.'),
        values: text('values.yaml.'),
      }),
    ),
    registryUid: text('Empty: packs are given to the platform.'),
    tags: Type.Array(
      Type.Object({
        group: Type.String(),
        packUid: Type.String(),
        tag: text('The version.'),
        version: Type.String(),
      }),
    ),
  },
  { title: 'PackTagEntity' },
)
export type PackTagEntity = Static<typeof PackTagEntity>
