import { hash } from 'node:crypto'
import type { EdgeHostInfo } from '../host/schemas.ts'
import type { DeviceSpec, EdgeHostFacts, EdgeHostRegistration } from '../platform/hosts/schemas.ts'

/** Facts that this host reports to the platform. */
export interface ReportedFacts {
  readonly device: DeviceSpec
  /** Address of the management interface, otherwise of the one of the default route; empty without one. */
  readonly hostAddress: string
  readonly macAddress?: string
  readonly service: { readonly name: string; readonly version: string }
  /** SHA-256 of the facts that count as a change, hex. */
  readonly hostChecksum: string
}

// Bounds of the platform's schema: a host with more is reported in part, rather than not at all.
const most = { disks: 256, partitions: 256, gpus: 64, nics: 512, servers: 16, text: 256, path: 4_096 }

/**
 * Makes the report from the reply of `GET /v1/edge-mgmt/edgehosts/current`. The use of a file system counts in tenths: a disk that fills is
 * reported, and one in daily use does not change each minute.
 */
export function reportedFacts({ spec, status }: EdgeHostInfo): ReportedFacts {
  const { archType, cpu, memory, os, disks, gpus } = spec.hardwareSpec
  const device: DeviceSpec = {
    ...(archType === 'amd64' || archType === 'arm64' ? { archType } : {}),
    cpu,
    memory,
    os: shortTexts(os),
    disks: disks.slice(0, most.disks).map(({ partitions, size, ...disk }) => ({
      ...shortTexts(disk),
      size,
      partitions: partitions.slice(0, most.partitions).map((partition) => ({
        ...partition,
        fileSystemType: short(partition.fileSystemType),
        mountPoint: partition.mountPoint.slice(0, most.path),
      })),
    })),
    gpus: gpus.slice(0, most.gpus).map(({ addresses, ...gpu }) => ({
      ...shortTexts(gpu),
      addresses: Object.fromEntries(Object.entries(addresses).slice(0, most.gpus)),
    })),
    nics: spec.networkInfo.slice(0, most.nics).map(({ dns, ...nic }) => ({
      ...shortTexts(nic, 64),
      dns: dns.slice(0, most.servers).map((server) => server.slice(0, 64)),
    })),
    ...spec.hostInfo,
  }
  const { networkInfo } = spec
  const nic =
    networkInfo.find(({ isManagement }) => isManagement) ??
    networkInfo.find(({ isDefault }) => isDefault) ??
    networkInfo[0]
  const facts = {
    device,
    hostAddress: (nic?.ip ?? '').slice(0, 64),
    ...(nic?.macAddr === undefined ? {} : { macAddress: nic.macAddr.slice(0, 64) }),
    service: { name: 'edgehostd', version: status.agentVersion.slice(0, 64) },
  }
  return { ...facts, hostChecksum: hash('sha256', JSON.stringify(inTenths(facts)), 'hex') }
}

/** The body of `PUT /v1/edgehosts/{uid}`. */
export const toEdgeHostFacts = ({ device, service, ...host }: ReportedFacts): EdgeHostFacts => ({
  spec: { device, service, host },
})

/** A host that registers. */
export interface Registrant {
  readonly name: string
  readonly hostId: string
  /** The registration token; may be empty where the platform knows the key. */
  readonly token: string
  /** Base64url. */
  readonly publicKey: string
}

/** The body of `POST /v1/edgehosts/register`. */
export const toRegistration = (
  { name, hostId, token, publicKey }: Registrant,
  { device, service, ...host }: ReportedFacts,
): EdgeHostRegistration => ({
  metadata: { name },
  spec: {
    device,
    service,
    host: {
      ...host,
      hostUid: hostId,
      hostAuthToken: token,
      hostIdentity: { mode: 'signature', publicKey },
    },
  },
})

function inTenths(facts: Pick<ReportedFacts, 'device'>): unknown {
  const disks = (facts.device.disks ?? []).map(({ partitions = [], ...disk }) => ({
    ...disk,
    partitions: partitions.map(({ usedSpace = 0, totalSpace = 0, ...partition }) => ({
      ...partition,
      totalSpace,
      freeSpace: 0,
      usedTenths: Math.round((10 * usedSpace) / Math.max(1, totalSpace)),
    })),
  }))
  return { ...facts, device: { ...facts.device, disks } }
}

const short = (text: string) => text.slice(0, most.text)

const shortTexts = <T extends object>(values: T, length = most.text): T =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      typeof value === 'string' ? value.slice(0, length) : (value as unknown),
    ]),
  ) as T
