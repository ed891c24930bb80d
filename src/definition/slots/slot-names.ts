/**
 * `embedded`: placed by an installer, or in a content bundle. `overridden`: uploaded. `update`: uploaded or in a content bundle,
 * while a cluster exists.
 */
export const slotNames = ['embedded', 'overridden', 'update'] as const
/** The slots that the API shows. */
export type ShownSlot = (typeof slotNames)[number]
/** `platform`: the desired definition from the platform; the API does not show it. */
export type SlotName = ShownSlot | 'platform'

/**
 * The slot of the definition that a cluster is made with where none is named: the one that came last into update or overridden, or the
 * embedded one. Host and client choose by it. Pure.
 * @param addedAt when the definition came into a slot, milliseconds since 1970; undefined for an empty slot
 * @returns undefined where all are empty
 */
export function nextSlot(addedAt: (slot: ShownSlot) => number | undefined): ShownSlot | undefined {
  const [update, overridden] = [addedAt('update'), addedAt('overridden')]
  // After the deletion of a cluster, an upload is newer than the last update of that cluster.
  if (overridden !== undefined && (update === undefined || overridden > update)) return 'overridden'
  if (update !== undefined) return 'update'
  return addedAt('embedded') === undefined ? undefined : 'embedded'
}
