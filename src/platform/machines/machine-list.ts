import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { Machine, type MachineCondition } from '../schemas/machines.ts'

/** What queries of a list of machines may name. */
export const machineList: ListResource<MemoryField<Machine>> = {
  name: 'machines',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': { type: 'text', read: ({ metadata }) => metadata.uid },
    'metadata.name': { type: 'text', read: ({ metadata }) => metadata.name },
    'metadata.creationTimestamp': {
      type: 'time',
      read: ({ metadata }) => Date.parse(metadata.creationTimestamp),
    },
    'status.instanceState': { type: 'text', read: ({ status }) => status.instanceState },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: Machine,
}

/** A machine with one condition more. */
export const withCondition = (machine: Machine, condition: MachineCondition): Machine => {
  const { health } = machine.status
  const conditions = [...health.conditions, condition]
  return { ...machine, status: { ...machine.status, health: { ...health, conditions } } }
}
