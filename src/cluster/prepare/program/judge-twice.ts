import { keyOf, nameOf, type InventoryEntry } from '../../../kubernetes/inventory.ts'
import type { InstalledObject } from './installed-objects.ts'
import { namespacesBefore, type Place } from './installed-packs.ts'
import type { Finding } from './finding.ts'

export interface TwiceOptions {
  /** Undefined for a kind that is not known. */
  readonly isNamespaced: (object: InstalledObject) => boolean | undefined
  readonly report: (place: Place, finding: Finding) => void
}

/**
 * Finds objects that are installed twice. helm refuses what it did not make itself; what is applied replaces what is there.
 * @param places in the order in which they are installed
 */
export function judgeTwice(places: readonly Place[], { isNamespaced, report }: TwiceOptions): void {
  const before = new Map<string, Pick<Place, 'object'> & Partial<Place>>(
    namespacesBefore.map((object) => [keyOf(entryOf(object, undefined)), { object }]),
  )
  for (const place of places) {
    const { object, installation, pack } = place
    // A hook is deleted and made anew.
    if (object.name === '' || object.from === 'hook') continue
    const namespace = isNamespaced(object) === true ? object.namespace || installation.namespace : undefined
    const entry = entryOf(object, namespace)
    const first = before.get(keyOf(entry))
    before.set(keyOf(entry), place)
    if (!first) continue
    const { release } = installation
    const whose = first.pack ? `the pack ${first.pack.id}` : 'Kubernetes'
    if (object.from === 'template') {
      const isAdopted = first.object.adopter === `${installation.namespace}/${release}`
      // Two charts with one release are a problem of their own.
      const isOfSameRelease =
        first.installation !== installation &&
        first.installation?.release === release &&
        first.installation.namespace === installation.namespace
      if (isAdopted || isOfSameRelease) continue
      const where =
        first.installation === installation
          ? `${nameOf(entry)} is twice in the chart of the release ${release}`
          : `${nameOf(entry)} of the release ${release} is made before by ${first.pack === pack ? 'the pack itself' : whose}`
      const advice =
        first.object.from === 'settings'
          ? 'turn it off in the values of the chart'
          : 'leave it out of one of them'
      report(place, {
        ...{ code: 'ObjectTwice', severity: 'error', cause: `${whose} ${release}` },
        message: `${where}, and helm takes over nothing that it did not make; ${advice}`,
      })
    } else if (object.from === 'manifest' && first.object.from !== 'settings') {
      if (!first.pack || first.pack === pack || first.object.sum === object.sum) continue
      report(place, {
        ...{ code: 'ObjectTwice', severity: 'warning', cause: whose },
        message: `${nameOf(entry)} is in ${whose} too, and replaces that one`,
      })
    }
  }
}

const entryOf = (
  { apiVersion, kind, name }: InstalledObject,
  namespace: string | undefined,
): InventoryEntry => ({
  ...{ apiVersion, kind, name },
  ...(namespace === undefined ? {} : { namespace }),
})
