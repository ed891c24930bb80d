import { masked } from '../../base/mask.ts'
import type { PreparedVariable } from '../prepare/prepared.ts'
import type { Stored } from './document.ts'

/**
 * What was masked stays masked: another definition may declare a variable that is not sensitive any more, and a mask that is sent back
 * would then show the stored value to everyone who may read the cluster. Only another value is shown. Pure.
 * @param stored the revisions whose values may be kept
 */
export function keepSensitive(
  variables: readonly PreparedVariable[],
  stored: readonly Stored[],
): readonly PreparedVariable[] {
  const kept = new Set(stored.flatMap(maskedValues).map(([name, value]) => keyOf(name, value)))
  // By the name alone: each version of a profile has a uid of its own.
  return variables.map((each) =>
    each.isSensitive || !kept.has(keyOf(each.name, each.value)) ? each : { ...each, isSensitive: true },
  )
}

const keyOf = (name: string, value: string) => JSON.stringify([name, value])

/** Name and plain text of what is masked. */
function maskedValues({ posted, plain }: Stored): readonly (readonly [string, string])[] {
  const plainOnes = plain?.spec?.profileVariables ?? []
  return (posted.spec?.profileVariables ?? []).flatMap(({ name = '', value }, index) => {
    const text = plainOnes[index]?.value ?? ''
    return value === masked && text !== '' ? [[name, text] as const] : []
  })
}
