import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { builtInNamespaces } from '../../kubernetes/built-in-namespaces.ts'
import type { Wanted, WantedChart, WantedNamespace, WantedPack } from '../wanted.ts'

/** What the steps of packs need of this host. */
export interface PackTools {
  /** Path of helm. */
  readonly helm: string
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string
}

/** A manifest; an object that names no namespace belongs to this one. */
export interface ManifestFile {
  readonly file: string
  readonly namespace: string
}

/** The release of a chart, as `namespace/name`. */
export const releaseOf = ({ namespace, release }: WantedChart): string => `${namespace}/${release}`

/** Tells a chart with its values from others; empty where that is not known. */
export function chartDigest({ name, version, sum, valuesSum }: WantedChart): string {
  if (sum === undefined || valuesSum === undefined) return ''
  return createHash('sha256')
    .update(JSON.stringify([name, version, sum, valuesSum]))
    .digest('hex')
}

/** The names of the namespaces of a pack, also those that only its charts and manifests name. */
export function namesOf({ namespaces, charts, manifests }: WantedPack): readonly string[] {
  const named = namespaces.map(({ name }) => name)
  const others = [...charts, ...manifests].map(({ namespace }) => namespace)
  const made = others.filter((name) => name !== '' && !builtInNamespaces.has(name))
  return [...new Set([...named, ...made])]
}

/** What the steps of each pack have to know of all packs. */
export interface ClusterContent {
  /** The manifests of all wanted packs. */
  readonly manifests: readonly ManifestFile[]
  /** Names of the namespaces that the wanted packs need, without those that are only objects of their manifests. */
  readonly namespaces: readonly string[]
  /** Releases of all wanted packs, by `releaseOf`. */
  readonly releases: ReadonlySet<string>
}

// What is wanted never changes. A plan asks for each of its packs, which may be hundreds.
const known = new WeakMap<Wanted, ClusterContent>()

/** What all wanted packs have together; made once for each `Wanted`. */
export function contentOf(wanted: Wanted): ClusterContent {
  const found = known.get(wanted)
  if (found) return found
  const { packs, folder } = wanted
  const content: ClusterContent = {
    manifests: packs.flatMap((pack) => manifestsOf(folder, pack)),
    namespaces: [...new Set(packs.flatMap(namesOf))],
    releases: new Set(packs.flatMap(({ charts }) => charts.map(releaseOf))),
  }
  known.set(wanted, content)
  return content
}

/** The manifests of a pack. @param folder `Wanted.folder` */
export const manifestsOf = (folder: string, { manifests }: WantedPack): readonly ManifestFile[] =>
  manifests.map(({ file, namespace }) => ({ file: join(folder, file), namespace }))

/** A manifest and whose it is. */
export interface OwnedManifest extends ManifestFile {
  /** `id` of the pack. */
  readonly id: string
}

/** The manifests of all wanted packs. */
export const ownedManifests = ({ packs, folder }: Wanted): readonly OwnedManifest[] =>
  packs.flatMap((pack) => manifestsOf(folder, pack).map((each) => ({ ...each, id: pack.id })))

/** All namespaces to which packs give labels or annotations, with those of all packs. */
export const labelledNamespaces = (wanted: Wanted): readonly WantedNamespace[] =>
  labelled(
    wanted,
    wanted.packs.flatMap(({ namespaces }) => namespaces.map(({ name }) => name)),
  )

/**
 * The namespaces of a pack with the labels and annotations that any pack gives them: all are applied by one field manager, so what is
 * left out would be taken away.
 */
export const namespacesOf = (wanted: Wanted, pack: WantedPack): readonly WantedNamespace[] =>
  labelled(wanted, namesOf(pack))

function labelled({ packs }: Wanted, names: readonly string[]): readonly WantedNamespace[] {
  const made = new Map(names.map((name) => [name, { labels: {}, annotations: {} }]))
  for (const { namespaces } of packs) {
    for (const { name, labels, annotations } of namespaces) {
      const found = made.get(name)
      if (!found) continue
      Object.assign(found.labels, labels)
      Object.assign(found.annotations, annotations)
    }
  }
  return [...made].map(([name, given]) => ({ name, ...given }))
}
