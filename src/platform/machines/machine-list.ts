import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { EdgeNativeMachine, Machine, type MachineCondition } from '../schemas/machines.ts'

const anyMachine: Omit<ListResource<MemoryField<Pick<Machine, 'metadata' | 'status'>>>, 'item'> = {
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
}

/** What queries of a list of servers may name. */
export const machineList: ListResource<MemoryField<Machine>> = { ...anyMachine, item: Machine }

/** What queries of a list of hosts as machines may name. */
export const edgeMachineList: ListResource<MemoryField<EdgeNativeMachine>> = {
  ...anyMachine,
  item: EdgeNativeMachine,
}

/** A machine with one condition more. */
export const withCondition = (machine: Machine, condition: MachineCondition): Machine => {
  const { health } = machine.status
  const conditions = [...health.conditions, condition]
  return { ...machine, status: { ...machine.status, health: { ...health, conditions } } }
}
