import type { EdgeHostInfo } from '../schemas.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { renderFacts, type Fact, type Paper, renderTable, type Column, plural } from '../../ctl/layout.ts'
import type { Context } from '../../ctl/client.ts'

type Disk = EdgeHostInfo['spec']['hardwareSpec']['disks'][number]
type Nic = EdgeHostInfo['spec']['networkInfo'][number]
type Gpu = EdgeHostInfo['spec']['hardwareSpec']['gpus'][number]

/** `host show`: all facts of the host. */
export async function showHost({ client, output }: Context): Promise<undefined> {
  const host = await client.get<EdgeHostInfo>(hostPath, ['metadata', 'spec', 'status'])
  await output.show(host, (paper) => renderHost(host, paper))
  return undefined
}

function renderHost(host: EdgeHostInfo, paper: Paper): string {
  const { disks, gpus } = host.spec.hardwareSpec
  const tables = [
    renderFacts(hostFacts(host), paper),
    ...(disks.length > 0 ? [renderTable(disks.flatMap(fileSystems), diskLayout, paper.columns)] : []),
    ...(host.spec.networkInfo.length > 0
      ? [renderTable(host.spec.networkInfo, nicLayout, paper.columns)]
      : []),
    ...(gpus.length > 0 ? [renderTable(gpus, gpuLayout, paper.columns)] : []),
  ]
  return tables.join('\n')
}

function hostFacts({ metadata, spec, status }: EdgeHostInfo): Fact[] {
  const { os, cpu, memory, archType } = spec.hardwareSpec
  const fact = (label: string, ...parts: readonly (string | undefined)[]): Fact[] => {
    const text = parts.filter((part) => part !== undefined && part !== '').join(' ')
    return text === '' ? [] : [{ label, lines: [text] }]
  }
  return [
    ...fact('Name', status.hostName ?? metadata.name),
    ...fact('ID', metadata.id),
    ...fact('Mode', `${spec.connectionMode} (${spec.managementMode})`),
    ...fact('Version', status.agentVersion),
    ...fact('System', os.family, os.version),
    ...fact('Kernel', os.kernel, os.kernelVersion, archType),
    ...fact('Processors', cpu.cores?.toString()),
    ...fact('Memory', memory.sizeInMB === undefined ? undefined : `${memory.sizeInMB} MiB`),
    ...fact(
      'Secure Boot',
      spec.hostInfo.secureBoot === undefined ? undefined : spec.hostInfo.secureBoot ? 'on' : 'off',
    ),
    ...fact('DNS', ...status.dns.nameservers),
    ...fact('Search', ...status.dns.searchDomains),
    ...fact(
      'NTP',
      ...(status.ntp.ntpServers.length > 0 ? status.ntp.ntpServers : status.ntp.fallbackNtpServers),
    ),
    ...(status.conditions ?? []).map(({ type, message }): Fact => ({
      label: 'Not read',
      lines: [`${type}: ${message}`],
      mood: 'warning',
    })),
  ]
}

interface FileSystem {
  readonly disk: Disk
  readonly partition: Disk['partitions'][number] | undefined
}

const fileSystems = (disk: Disk): FileSystem[] =>
  disk.partitions.length > 0
    ? disk.partitions.map((partition) => ({ disk, partition }))
    : [{ disk, partition: undefined }]

const gib = (value: number | undefined) => (value === undefined ? undefined : `${value} GiB`)

const diskLayout: readonly Column<FileSystem>[] = [
  {
    title: 'DISK',
    read: ({ disk }) => [disk.controller, disk.vendor].filter(Boolean).join(' '),
    isFlexible: true,
  },
  { title: 'SIZE', read: ({ disk }) => gib(disk.size) },
  { title: 'MOUNTED ON', read: ({ partition }) => partition?.mountPoint, isFlexible: true },
  { title: 'TYPE', read: ({ partition }) => partition?.fileSystemType },
  { title: 'USED', read: ({ partition }) => gib(partition?.usedSpace) },
  { title: 'FREE', read: ({ partition }) => gib(partition?.freeSpace) },
]

const nicLayout: readonly Column<Nic>[] = [
  { title: 'NIC', read: ({ nicName, isDefault }) => (isDefault ? `${nicName} *` : nicName) },
  { title: 'ADDRESS', read: ({ ip }) => ip, isFlexible: true },
  { title: 'SUBNET', read: ({ subnet }) => subnet },
  { title: 'GATEWAY', read: ({ gateway }) => gateway, isFlexible: true },
  { title: 'MAC', read: ({ macAddr }) => macAddr },
]

const gpuLayout: readonly Column<Gpu>[] = [
  { title: 'GPU', read: ({ vendor, model }) => [vendor, model].filter(Boolean).join(' '), isFlexible: true },
  { title: 'COUNT', read: ({ gpuCount }) => plural(gpuCount, 'device') },
  { title: 'MEMORY', read: ({ memory }) => memory },
]
