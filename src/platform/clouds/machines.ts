import { Machine, EdgeNativeMachine, type MachineCondition } from './schemas.ts'
import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { poolNameOf } from '../clusters/list.ts'
import type { ClusterRecord } from '../clusters/store.ts'
import type { HostParts } from '../hosts/hosts.ts'
import type { DeviceSpec, EdgeHostDevice } from '../hosts/schemas.ts'

/** A read of the machines of a pool. */
export interface MachineRead {
  /** Ends the read. */
  readonly signal: AbortSignal
  /**
   * Reports the memory of the data read so far, in bytes (`heapBytes`). Called before it is kept.
   * @throws AppError CloudUnavailable where the platform has not so much for it
   */
  hold(bytes: number): void
}

/** Source of the machines of a pool. A cloud is a further one, with credentials and pools of its own. */
export interface MachineProvider<Credentials, Pool, Item = Machine> {
  /** Checks that the credentials are accepted. @throws AppError why they are not; CloudUnavailable where that is not known now */
  validate(credentials: Credentials, signal: AbortSignal): Promise<void>
  /** The machines of a pool, in no order. @throws AppError CloudUnavailable where they are not known now; any other one is an answer */
  machines(pool: Pool, read: MachineRead): Promise<readonly Item[]>
}

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

/** Queryable fields of a list of servers. */
export const machineList: ListResource<MemoryField<Machine>> = { ...anyMachine, item: Machine }

/** Queryable fields of a list of hosts as machines. */
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

/** A pool of a cluster on hosts. */
export interface EdgePool {
  readonly cluster: ClusterRecord
  readonly name: string
}

/** Hosts as machines. They have logged in, so there are no credentials. */
export const createEdgeMachines = ({
  find,
  toDevice,
  silenceOf,
}: Pick<HostParts, 'find' | 'toDevice' | 'silenceOf'>): MachineProvider<
  undefined,
  EdgePool,
  EdgeNativeMachine
> => ({
  validate: async () => undefined,
  async machines({ cluster, name }) {
    if (name !== poolNameOf(cluster))
      throw new AppError(
        generalErrors.NotFound,
        `the cluster has no machine pool with this name; it has ${poolNameOf(cluster)}`,
      )
    const host = find(cluster.hostUid)
    return host ? [toMachine(cluster, toDevice(host), silenceOf(host).isSilent)] : []
  },
})

const states: Readonly<Record<ClusterRecord['state'], EdgeNativeMachine['status']['instanceState']>> = {
  ...({ Pending: 'Pending', Provisioning: 'Provisioning', Running: 'Running' } as const),
  ...({ Deleting: 'Deleting', Deleted: 'Deleted', Error: 'Failed' } as const),
}
const mostNics = 128

/** The host of a cluster as a machine. Pure. */
function toMachine(
  cluster: ClusterRecord,
  { metadata, spec, status }: EdgeHostDevice,
  isHostSilent: boolean,
): EdgeNativeMachine {
  const { conditions, configuration, state } = cluster
  const [{ hosts }] = configuration.spec.cloudConfig.spec.machinePoolConfig
  const { hostName } = hosts[0]
  const { nics = [] } = spec.device
  const { health } = status
  // The last reported state is not the current one.
  const isSilent = isHostSilent && state === 'Running'
  return {
    apiVersion: 'v1',
    kind: 'Machine',
    metadata,
    spec: {
      ...(hostName === undefined ? {} : { dnsName: hostName }),
      edgeHostUid: metadata.uid,
      instanceType: sizeOf(spec.device),
      machineMetadata: { creationTimestamp: metadata.creationTimestamp },
      nics: nics.slice(0, mostNics).map(({ ip = '', nicName = '' }, index) => ({
        index,
        ...(nicName === '' ? {} : { networkName: nicName }),
        privateIPs: ip === '' ? [] : [ip],
      })),
      type: 'edge-native',
    },
    status: {
      addresses: nics
        .slice(0, mostNics)
        .flatMap(({ ip = '' }) => (ip === '' ? [] : [{ address: ip, type: 'InternalIP' }])),
      health: {
        conditions: conditions.map(({ message = '', reason = '', status: is, type }) => ({
          message,
          reason,
          status: is,
          type,
        })),
        ...(health ? { lastHeartBeatTimestamp: health.lastHeartbeatTimestamp } : {}),
        state: health?.state ?? '',
      },
      instanceState: isSilent ? 'Unknown' : states[state],
    },
  }
}

function sizeOf({ archType, cpu, memory, disks }: DeviceSpec): EdgeNativeMachine['spec']['instanceType'] {
  const diskGiB = disks?.reduce((sum, { size = 0 }) => sum + size, 0)
  return {
    ...(diskGiB === undefined ? {} : { diskGiB }),
    ...(memory?.sizeInMB === undefined ? {} : { memoryMiB: memory.sizeInMB }),
    name: archType ?? '',
    ...(cpu?.cores === undefined ? {} : { numCPUs: cpu.cores }),
  }
}
