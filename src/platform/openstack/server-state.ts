import type { Machine } from '../schemas/machines.ts'

type Status = Machine['status']

/** What Nova says of the state of a server. */
export interface NovaState {
  readonly status: string
  /** What Nova does with it at the moment; empty for nothing. */
  readonly task: string
  /** Why it failed; empty where Nova does not say. */
  readonly fault: string
}

// What is done with a server that is there: it counts as running meanwhile.
const maintenance: Readonly<Record<string, string>> = {
  REBOOT: 'The server is being restarted in order.',
  HARD_REBOOT: 'The server is being switched off and on again.',
  RESIZE: 'The server is being given another size.',
  VERIFY_RESIZE: 'The server has another size, which waits to be confirmed.',
  REVERT_RESIZE: 'The server is being given its former size again.',
  MIGRATING: 'The server is being moved to another machine.',
  PASSWORD: 'The password of the server is being changed.',
  REBUILD: 'The server is being made again from an image.',
  RESCUE: 'The server runs a system for its repair.',
}
const provisioned = ['SHUTOFF', 'PAUSED', 'SUSPENDED', 'SHELVED', 'SHELVED_OFFLOADED']
const deleting = ['deleting', 'soft-deleting']

/** The state of a server as one of a machine, docs/platform.md, "Clouds". Pure. */
export function toMachineState({ status, task, fault }: NovaState): Pick<
  Status,
  'instanceState' | 'maintenanceStatus'
> & {
  readonly conditions: Status['health']['conditions']
} {
  const conditions: Status['health']['conditions'] = []
  if (deleting.includes(task) || status === 'SOFT_DELETED') return { instanceState: 'Deleting', conditions }
  if (status === 'DELETED') return { instanceState: 'Deleted', conditions }
  if (status === 'ERROR') {
    const condition = { type: 'Failed', status: 'True', reason: 'ServerError', message: fault }
    return { instanceState: 'Failed', conditions: [condition] }
  }
  if (status === 'BUILD') {
    const isWaiting = task === '' || task === 'scheduling'
    return { instanceState: isWaiting ? 'Pending' : 'Provisioning', conditions }
  }
  if (status === 'ACTIVE') return { instanceState: 'Running', conditions }
  if (provisioned.includes(status)) return { instanceState: 'Provisioned', conditions }
  if (!Object.hasOwn(maintenance, status)) return { instanceState: 'Unknown', conditions }
  const maintenanceStatus = { action: status, message: maintenance[status] ?? '', state: task }
  return { instanceState: 'Running', maintenanceStatus, conditions }
}
