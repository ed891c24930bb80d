import { join } from 'node:path'
import type { PackObserved } from '../observed.ts'
import type { Step } from '../step.ts'
import { shownPack, type Wanted } from '../wanted.ts'
import type { UninstallOrder } from './helm/uninstall-release.ts'
import { contentOf, type ManifestFile, type PackTools } from './pack-content.ts'
import { releaseFiles } from './release-files.ts'

/** Orders of the `call` steps; paths are absolute. */
export interface ObjectsGoneOrder {
  readonly id: string
  /** Manifests of the wanted packs: what is in them stays. */
  readonly others: readonly ManifestFile[]
}
export interface PackGoneOrder extends ObjectsGoneOrder {
  /** Namespaces that the wanted packs need. */
  readonly namespaces: readonly string[]
}

const objectsMs = 900_000
/** How long helm waits until the objects of a release are gone; hooks of the chart count too. */
const uninstallMs = 300_000
const aroundHelmMs = 180_000

/**
 * Steps that take a pack away, in the opposite order of its installation: objects of manifests, which may need the controllers of a
 * chart to go, then releases, then the kinds and namespaces. The record of the pack goes last, so that what was cut off is done again.
 */
export function removeSteps(
  tools: PackTools,
  wanted: Wanted,
  id: string,
  { charts, hasObjects }: PackObserved,
): readonly Step[] {
  const { manifests: others, namespaces } = contentOf(wanted)
  const objects: ObjectsGoneOrder = { id, others }
  const rest: PackGoneOrder = { id, others, namespaces }
  return [
    ...(hasObjects
      ? [
          {
            ...{
              key: `pack ${id} objects gone`,
              title: `Delete the objects of the pack ${shownPack(id)}`,
              pack: id,
            },
            timeoutMs: objectsMs,
            work: { kind: 'call', call: 'pack-objects-gone', order: { ...objects } },
          } satisfies Step,
        ]
      : []),
    ...uninstallSteps(tools, wanted, id, charts),
    {
      ...{ key: `pack ${id} gone`, title: `Delete what is left of the pack ${shownPack(id)}`, pack: id },
      timeoutMs: objectsMs,
      work: { kind: 'call', call: 'pack-gone', order: { ...rest } },
    },
  ]
}

/** Steps that uninstall the releases of a pack which no wanted pack has, the last one first. @param charts as `namespace/name` */
export function uninstallSteps(
  { helm, kubeconfig }: PackTools,
  wanted: Wanted,
  id: string,
  charts: readonly string[],
): readonly Step[] {
  const { releases } = contentOf(wanted)
  return charts
    .filter((each) => !releases.has(each))
    .toReversed()
    .map((each) => {
      const [namespace = '', release = ''] = each.split('/')
      const order: UninstallOrder = {
        ...{ program: helm, kubeconfig, release, namespace, timeoutMs: uninstallMs },
        home: join(wanted.folder, 'helm', `${namespace}.${release}`),
        files: Object.values(releaseFiles(wanted.folder, { namespace, release })),
      }
      return {
        ...{ key: `pack ${id} release ${each} gone`, title: `Uninstall the Helm release ${each}`, pack: id },
        timeoutMs: uninstallMs + aroundHelmMs,
        work: { kind: 'action', action: 'helm-uninstall', order: { ...order } },
      }
    })
}
