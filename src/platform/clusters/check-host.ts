import { masked } from '../../base/mask.ts'
import { kubernetesPacks, unknownPack, unsupportedIn } from '../../cluster/desired/version.ts'
import { toPackConfig, type PackConfig } from '../../cluster/engine/pack-config.ts'
import { fixedSettingsBetween, saidOfFixed } from '../../cluster/engine/fixed-settings.ts'
import { settingsIn } from '../../cluster/host/kubernetes-settings.ts'
import { judgeReported, varLib, type ReportedFacts } from '../../cluster/host/judge-host.ts'
import { isInSubnet } from '../../cluster/host/subnet.ts'
import type { ExaminedKubernetes } from '../../definition/examination/protocol.ts'
import type { HostRecord } from '../hosts/store.ts'
import type { ClusterProblem } from './schemas.ts'
import { networksOf } from './check-configuration.ts'

const mebibyte = 2 ** 20
const neededGibibytes = varLib.neededBytes / 2 ** 30
const stateFolder = `${varLib.folder}/`

/**
 * What the pre-flight of a host will refuse of a new cluster, by what the host has reported of itself and its own rules; the host finds the
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

/** What a cluster keeps for its life, where its profiles or values would change it. Pure. @param running what its host has applied */
export function fixedSettingProblems(
  next: ExaminedKubernetes,
  running: ExaminedKubernetes,
): readonly ClusterProblem[] {
  return fixedSettingsBetween(configOf(running.config), configOf(next.config))
    .filter(({ before, after }) => ![before, after].some((text) => text.includes(masked)))
    .map((setting) => ({
      ...{ code: 'CannotChange', severity: 'error', path: 'spec.profiles', pack: next.pack },
      message: saidOfFixed(setting, next.pack),
    }))
}

/** What cannot be read is refused by kubeadm on the host. */
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
      // Other interfaces may be those of a cluster that was there before.
      routes: networksOf(host)
        .filter(({ subnet }) => address !== '' && isInSubnet(address, subnet))
        .map(({ subnet, networkInterface }) => ({ subnet, networkInterface, isConnected: true })),
    },
  }
}

/** Space is freed and used meanwhile, so that what was reported is a warning. */
function spaceProblems(host: HostRecord): readonly ClusterProblem[] {
  const partitions = (host.reported.device.disks ?? []).flatMap(({ partitions: each = [] }) => each)
  const holding = partitions
    .filter(({ mountPoint = '' }) => stateFolder.startsWith(`${mountPoint.replace(/\/$/, '')}/`))
    .toSorted((one, other) => (other.mountPoint ?? '').length - (one.mountPoint ?? '').length)[0]
  const { mountPoint, freeSpace } = { ...holding }
  if (mountPoint === undefined || freeSpace === undefined || freeSpace >= neededGibibytes) return []
  return [
    {
      ...{ code: 'DiskSpaceLow', severity: 'warning', path: hostPath },
      message: `the host ${host.name} has reported ${freeSpace} GiB free at ${mountPoint}; a cluster needs ${neededGibibytes} GiB there, free some space`,
    },
  ]
}
