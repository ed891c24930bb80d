import type { UnitObserved } from '../observed.ts'

/**
 * Parses `systemctl show --property=Id,LoadState,ActiveState UNIT…`: a block of lines for each unit.
 * @returns the state of a unit by its name
 */
export function parseUnitStates(output: string): (unit: string) => UnitObserved {
  const states = new Map<string, UnitObserved>()
  for (const block of output.split('\n\n')) {
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(block)?.[1] ?? ''
    const isThere = value('LoadState') === 'loaded'
    states.set(value('Id'), isThere ? (value('ActiveState') === 'active' ? 'running' : 'stopped') : 'absent')
  }
  return (unit) => states.get(unit) ?? 'absent'
}
