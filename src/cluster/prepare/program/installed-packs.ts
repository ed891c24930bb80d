import { builtInNamespaces } from '../../../kubernetes/built-in-namespaces.ts'
import type { WantedPack } from '../../wanted.ts'
import type { InstalledObject } from './installed-objects.ts'
import { missingMark } from './resolve.ts'

/** One thing that is installed together: a release, or the manifests of a pack. */
export interface Installation {
  /** For objects that name none. */
  readonly namespace: string
  /** Empty for manifests. */
  readonly release: string
  readonly objects: readonly InstalledObject[]
}

/** What a pack installs. */
export interface InstalledPack extends Pick<WantedPack, 'id' | 'order' | 'namespaces'> {
  /** In their order: charts, then manifests. */
  readonly installations: readonly Installation[]
}

/** An object and where it is installed. */
export interface Place {
  readonly pack: InstalledPack
  /** Of the installation; -1 for the namespaces that the settings of the pack name, which are made first. */
  readonly index: number
  readonly installation: Installation
  readonly object: InstalledObject
}

/** All objects in the order in which they are installed. What has an unknown value of a variable is left out. */
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
  ...{ apiVersion: 'v1', kind: 'Namespace', name, namespace: '', sum: '', from: 'settings', adopter: '' },
  ...{ defines: [], grants: [] },
})

/** Namespaces that are there before any pack. */
export const namespacesBefore = [...builtInNamespaces].map(namespaceObject)

/** Whether an object that others need is there when one is installed. Packs of one order do not wait for each other, and are tried again. */
export const isInTime = (maker: Place, { pack, index }: Place): boolean =>
  maker.pack === pack ? maker.index <= index : maker.pack.order <= pack.order
