import { isRecord } from '../../base/json.ts'
import { mappingAt, textOf, valueAt, hashOf } from './workspace.ts'
import { builtInNamespaces } from '../../kubernetes/names.ts'
import type { DesiredPack } from '../desired/desired-state.ts'
import { missingMark } from './resolve.ts'

/** An object that a pack installs, as far as it decides whether Kubernetes takes it. */
export interface InstalledObject {
  readonly apiVersion: string
  readonly kind: string
  /** Empty where it has `generateName`. */
  readonly name: string
  /** Its own namespace; empty otherwise. */
  readonly namespace: string
  /** Of its JSON, of an object of a manifest. */
  readonly sum: string
  /** `settings`: a namespace in the values of a pack. `crds`: of the folder `crds` of a chart; helm applies it first, unless present. */
  readonly from: 'settings' | 'manifest' | 'crds' | 'template' | 'hook'
  /** The release that helm finds in it, as `namespace/release`; empty otherwise. helm takes over objects with its own. */
  readonly adopter: string
  readonly defines: readonly DefinedKind[]
  readonly grants: readonly Grant[]
}

/** A kind that an object adds to the API. */
interface DefinedKind {
  readonly apiVersion: string
  /** Undefined for all kinds of that version, which an API server of an APIService has. */
  readonly kind: string | undefined
  /** Undefined where only that API server knows it. */
  readonly isNamespaced: boolean | undefined
}

/** Objects that a role or a binding allows programs of the cluster to make. */
export type Grant = 'kinds' | 'namespaces'

/** Reads an object. @returns undefined where it is no object, which the preparation reports elsewhere */
export function installedObject(value: unknown, from: InstalledObject['from']): InstalledObject | undefined {
  const [apiVersion, kind] = [textOf(valueAt(value, 'apiVersion')), textOf(valueAt(value, 'kind'))]
  if (!apiVersion || !kind) return undefined
  const metadata = mappingAt(value, 'metadata')
  const annotations = mappingAt(metadata, 'annotations')
  const release = textOf(annotations['meta.helm.sh/release-name'])
  return {
    apiVersion,
    kind,
    from,
    name: textOf(metadata.name) ?? '',
    namespace: textOf(metadata.namespace) ?? '',
    sum: from === 'manifest' ? hashOf(JSON.stringify(value)) : '',
    adopter:
      release === undefined
        ? ''
        : `${textOf(annotations['meta.helm.sh/release-namespace']) ?? ''}/${release}`,
    defines: definedBy(value, kind),
    grants: grantsOf(value, kind),
  }
}

function definedBy(value: unknown, kind: string): DefinedKind[] {
  if (kind === 'APIService') {
    const [group, version] = [valueAt(value, 'spec', 'group'), valueAt(value, 'spec', 'version')].map(textOf)
    return [{ apiVersion: `${group ?? ''}/${version ?? ''}`, kind: undefined, isNamespaced: undefined }]
  }
  if (kind !== 'CustomResourceDefinition') return []
  const spec = mappingAt(value, 'spec')
  const [group, of] = [textOf(spec.group), textOf(valueAt(spec, 'names', 'kind'))]
  const versions = Array.isArray(spec.versions) ? (spec.versions as unknown[]) : []
  return versions.flatMap((each) => {
    const version = textOf(valueAt(each, 'name'))
    if (!group || !version || valueAt(each, 'served') === false) return []
    return [{ apiVersion: `${group}/${version}`, kind: of, isNamespaced: spec.scope !== 'Cluster' }]
  })
}

// With these a program can give itself more rights, or act as another one.
const mightyVerbs = ['bind', 'escalate', 'impersonate']

function grantsOf(value: unknown, kind: string): readonly Grant[] {
  if (kind === 'ClusterRoleBinding') return valueAt(value, 'roleRef', 'name') === 'cluster-admin' ? all : []
  if (kind !== 'ClusterRole') return []
  const rules = valueAt(value, 'rules')
  return (Array.isArray(rules) ? (rules as unknown[]) : []).flatMap((rule): readonly Grant[] => {
    const has = (field: string, ...some: readonly string[]) => {
      const found = isRecord(rule) ? rule[field] : undefined
      return Array.isArray(found) && ['*', ...some].some((each) => found.includes(each))
    }
    const isMighty = has('apiGroups', 'rbac.authorization.k8s.io', '') && has('verbs', ...mightyVerbs)
    const may = (group: string, resource: string) =>
      has('verbs', 'create') && has('apiGroups', group) && has('resources', resource)
    if (isMighty) return all
    return [
      ...(may('apiextensions.k8s.io', 'customresourcedefinitions') ? (['kinds'] as const) : []),
      ...(may('', 'namespaces') ? (['namespaces'] as const) : []),
    ]
  })
}

const all: readonly Grant[] = ['kinds', 'namespaces']

/** A unit of installation: a release, or the manifests of a pack. */
export interface Installation {
  /** For objects that name none. */
  readonly namespace: string
  /** Empty for manifests. */
  readonly release: string
  readonly objects: readonly InstalledObject[]
}

/** Installations of a pack. */
export interface InstalledPack extends Pick<DesiredPack, 'id' | 'order' | 'namespaces'> {
  /** In their order: charts, then manifests. */
  readonly installations: readonly Installation[]
}

/** An object and its place in the installation. */
export interface Place {
  readonly pack: InstalledPack
  /** Of the installation; -1 for the namespaces that the settings of the pack name, which are made first. */
  readonly index: number
  readonly installation: Installation
  readonly object: InstalledObject
}

/** All objects in the order in which they are installed. Objects with an unknown value of a variable are left out. */
export function placesOf(packs: readonly InstalledPack[]): readonly Place[] {
  const all = packs.flatMap((pack) => [
    ...pack.namespaces.map(({ name }): Place => ({ ...settings, pack, object: namespaceObject(name) })),
    ...pack.installations.flatMap((installation, index) =>
      installation.objects.map((object): Place => ({ pack, index, installation, object })),
    ),
  ])
  return all.filter(
    ({ object }) =>
      ![object.apiVersion, object.kind, object.name, object.namespace].some((text) =>
        text.includes(missingMark),
      ),
  )
}

const settings = { index: -1, installation: { namespace: '', release: '', objects: [] } }

const namespaceObject = (name: string): InstalledObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  name,
  namespace: '',
  sum: '',
  from: 'settings',
  adopter: '',
  defines: [],
  grants: [],
})

/** Namespaces that are there before any pack. */
export const namespacesBefore = [...builtInNamespaces].map(namespaceObject)

/** Whether an object that others need is there when one is installed. Packs of one order do not wait for each other, and are tried again. */
export const isInTime = (maker: Place, { pack, index }: Place): boolean =>
  maker.pack === pack ? maker.index <= index : maker.pack.order <= pack.order
