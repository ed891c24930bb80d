import { masked } from '../../base/mask.ts'
import { kubernetesPacks, unknownPack, unsupportedIn } from '../../cluster/desired/version.ts'
import {
  toPackConfig,
  type PackConfig,
  fixedSettingsBetween,
  saidOfFixed,
} from '../../cluster/engine/pack-config.ts'
import { settingsIn } from '../../cluster/host/kubernetes-settings.ts'
import { judgeReported, varLib, type ReportedFacts } from '../../cluster/host/judge-host.ts'
import { isInSubnet } from '../../base/subnet.ts'
import type { ExaminedKubernetes } from '../../definition/examination/protocol.ts'
import type { HostRecord } from '../hosts/store.ts'
import type { ClusterProblem } from './schemas.ts'
import { networksOf } from './check-configuration.ts'

const mebibyte = 2 ** 20
const neededGibibytes = varLib.neededBytes / 2 ** 30
const stateFolder = `${varLib.folder}/`

/**
 * Problems of a new cluster that the pre-flight of its host will find, by the reported facts and the host's own rules; the host finds the
 * rest. Pure.
 * @param address of the node; empty where it is not known
 */
export function newClusterProblems(
  { pack, version, config }: ExaminedKubernetes,
  host: HostRecord,
  address: string,
): readonly ClusterProblem[] {
  const found: ClusterProblem[] = []
  const add = (code: string, message: string) =>
    found.push({ code, severity: 'error', pack, path: 'spec.profiles', message: named(message, host) })
  const unsupported = unsupportedIn(version)
  if (unsupported !== undefined) add('KubernetesVersionUnsupported', unsupported)
  if (!kubernetesPacks.includes(pack)) add('KubernetesUnknown', unknownPack(pack))
  const settings = settingsIn(configOf(config))
  for (const { code, severity, message } of judgeReported(
    factsOf(host, address),
    { version, address },
    settings,
  ))
    found.push({ code, severity, path: hostPath, message: named(message, host) })
  return [...found, ...spaceProblems(host)]
}

const hostPath = 'spec.machinepoolconfig[0].cloudConfig.edgeHosts[0].hostUid'

/** Problems of profiles or values that would change a fixed setting of a cluster. Pure. @param running as its host has applied it */
export function fixedSettingProblems(
  next: ExaminedKubernetes,
  running: ExaminedKubernetes,
): readonly ClusterProblem[] {
  return fixedSettingsBetween(configOf(running.config), configOf(next.config))
    .filter(({ before, after }) => ![before, after].some((text) => text.includes(masked)))
    .map((setting) => ({
      code: 'CannotChange',
      severity: 'error',
      path: 'spec.profiles',
      pack: next.pack,
      message: saidOfFixed(setting, next.pack),
    }))
}

/** An unreadable config is refused by kubeadm on the host. */
function configOf(config: unknown): PackConfig {
  try {
    return toPackConfig(config)
  } catch {
    return toPackConfig({})
  }
}

const named = (message: string, { name }: HostRecord) => message.replaceAll('this host', `the host ${name}`)

function factsOf(host: HostRecord, address: string): ReportedFacts {
  const { cpu, memory, os } = host.reported.device
  return {
    ...(os?.kernelVersion ? { kernel: os.kernelVersion } : {}),
    ...(cpu?.cores ? { cores: cpu.cores } : {}),
    // Reported in whole MiB.
    ...(memory?.sizeInMB ? { memoryBytes: (memory.sizeInMB + 1) * mebibyte - 1 } : {}),
    networks: {
      addresses: new Set(),
      // Other interfaces may belong to an earlier cluster.
      routes: networksOf(host)
        .filter(({ subnet }) => address !== '' && isInSubnet(address, subnet))
        .map(({ subnet, networkInterface }) => ({ subnet, networkInterface, isConnected: true })),
    },
  }
}

/** Space is freed and used meanwhile, so a reported lack is a warning. */
function spaceProblems(host: HostRecord): readonly ClusterProblem[] {
  const partitions = (host.reported.device.disks ?? []).flatMap(({ partitions: each = [] }) => each)
  const holding = partitions
    .filter(({ mountPoint = '' }) => stateFolder.startsWith(`${mountPoint.replace(/\/$/, '')}/`))
    .toSorted((one, other) => (other.mountPoint ?? '').length - (one.mountPoint ?? '').length)[0]
  const { mountPoint, freeSpace } = { ...holding }
  if (mountPoint === undefined || freeSpace === undefined || freeSpace >= neededGibibytes) return []
  return [
    {
      code: 'DiskSpaceLow',
      severity: 'warning',
      path: hostPath,
      message: `the host ${host.name} has reported ${freeSpace} GiB free at ${mountPoint}; a cluster needs ${neededGibibytes} GiB there, free some space`,
    },
  ]
}
