import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { poolNameOf } from '../clusters/cloud-config.ts'
import type { ClusterRecord } from '../clusters/cluster-store.ts'
import type { HostParts } from '../hosts/create-hosts.ts'
import { silenceOf } from '../hosts/heartbeats.ts'
import type { DeviceSpec, EdgeHostDevice } from '../schemas/edge-hosts.ts'
import type { EdgeNativeMachine } from '../schemas/machines.ts'
import type { MachineProvider } from './provider.ts'

/** A pool of a cluster on hosts. */
export interface EdgePool {
  readonly cluster: ClusterRecord
  readonly name: string
}

/** Hosts as machines. They have logged in, so there are no credentials. */
export const createEdgeMachines = ({
  find,
  toDevice,
  now,
}: Pick<HostParts, 'find' | 'toDevice'> & { readonly now: () => number }): MachineProvider<
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
    return host ? [toMachine(cluster, toDevice(host), silenceOf(host, now()).isSilent)] : []
  },
})

const states: Readonly<Record<ClusterRecord['state'], EdgeNativeMachine['status']['instanceState']>> = {
  ...({ Pending: 'Pending', Provisioning: 'Provisioning', Running: 'Running' } as const),
  ...({ Deleting: 'Deleting', Deleted: 'Deleted', Error: 'Failed' } as const),
}
const mostNics = 128

/** The host of a cluster as a machine. Pure. */
export function toMachine(
  cluster: ClusterRecord,
  { metadata, spec, status }: EdgeHostDevice,
  isHostSilent: boolean,
): EdgeNativeMachine {
  const { conditions, configuration, state } = cluster
  const [{ hosts }] = configuration.spec.cloudConfig.spec.machinePoolConfig
  const { hostName } = hosts[0]
  const { nics = [] } = spec.device
  const { health } = status
  // What it said last is not what it is now.
  const isSilent = isHostSilent && state === 'Running'
  return {
    ...{ apiVersion: 'v1', kind: 'Machine', metadata },
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
          ...{ message, reason, status: is, type },
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
