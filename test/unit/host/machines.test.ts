import { expect, it } from 'vitest'
import type { EdgeHostInfo } from '../../../src/host/schemas.ts'
import { createSnapshot, type SnapshotOptions } from '../../../src/host/snapshot.ts'
import { openHostRecord } from '../../../src/host/identity/host-record.ts'
import { openDatabase } from '../../support/open-database.ts'
import { busctlLine, busctlOutput } from '../../fixtures/host/busctl.ts'
import { clockAt, programs, recordingLog } from '../../fixtures/host/edges.ts'
import { answer, queryLine } from '../../fixtures/host/nvidia-smi.ts'
import { machine } from '../../fixtures/host/tree.ts'

// The whole reply of machines from fixtures; each reader of files has a test of its own.

async function replyOf(
  name: string,
  addresses: Readonly<Record<string, readonly [ip: string, subnet: string]>>,
  options: Partial<SnapshotOptions> = {},
): Promise<EdgeHostInfo> {
  const { log, lines } = recordingLog()
  const server = [2, [192, 168, 43, 254]]
  const resolved = '/org/freedesktop/resolve1'
  const { runner } = programs({
    stat: `${2 ** 30} 100 60 55\n`,
    [queryLine]: answer('Disabled', 'Disabled'),
    [busctlLine(resolved)]: busctlOutput({ DNS: ['a(iiay)', [[3, ...server]]] }),
    [busctlLine(`${resolved}/link/_33`)]: busctlOutput({ DNS: ['a(iay)', [server]] }),
  })
  const files = machine(name, `/proc/meminfo = MemTotal:       ${16 * 2 ** 20} kB`)
  const settings = { identitySources: ['product-uuid', 'machine-id'] }
  const database = openDatabase(':memory:', log)
  const clock = clockAt(1_000)
  const snapshot = createSnapshot({
    files,
    runner,
    privileged: runner,
    clock,
    log,
    record: await openHostRecord({ settings, files, database, clock, log }),
    config: { mode: 'airgap' },
    agentVersion: '0.1.0',
    ipv4Addresses: () =>
      new Map(Object.entries(addresses).map(([nic, [ip, subnet]]) => [nic, [{ ip, subnet }]])),
    ...options,
  })
  await snapshot.refresh('all')
  expect(lines.filter(({ level, fact }) => level >= 40 && fact !== undefined)).toEqual([])
  return JSON.parse(snapshot.current()!.body) as EdgeHostInfo
}
const space = { totalSpace: 100, usedSpace: 40, freeSpace: 55 }

it('the facts of a laptop with LUKS, LVM and Wi-Fi are right', async () => {
  const { metadata, spec, status } = await replyOf('laptop', {
    wlp0s20f3: ['192.168.43.17', '255.255.255.0'],
    wg0: ['10.9.0.2', '255.255.0.0'],
    docker0: ['172.17.0.1', '255.255.0.0'],
    virbr0: ['192.168.122.1', '255.255.255.0'],
  })
  expect(metadata.id).toBe('edge-0a1b2c3d4e5f1a2b8c3d0123456789ab')
  expect(spec).toEqual({
    connectionMode: 'airgap',
    nodeRole: 'unknown',
    hardwareSpec: {
      archType: 'amd64',
      cpu: { cores: 16 },
      disks: [
        {
          controller: 'SATA',
          vendor: 'Samsung',
          size: 1863,
          partitions: [{ fileSystemType: 'ext4', mountPoint: '/srv/archive', ...space }],
        },
        {
          controller: 'USB',
          vendor: 'SanDisk',
          size: 29,
          partitions: [{ fileSystemType: 'fuseblk', mountPoint: '/media/anna/STICK', ...space }],
        },
        {
          controller: 'NVME',
          vendor: 'SK hynix',
          size: 954,
          partitions: [
            { fileSystemType: 'ext4', mountPoint: '/', ...space },
            { fileSystemType: 'ext4', mountPoint: '/boot', ...space },
            { fileSystemType: 'vfat', mountPoint: '/boot/efi', ...space },
            { fileSystemType: 'xfs', mountPoint: '/home', ...space },
          ],
        },
      ],
      gpus: [
        {
          vendor: 'Intel',
          model: 'TigerLake-LP GT2 [Iris Xe Graphics]',
          gpuCount: 1,
          addresses: { 0: '0000_00_02_0' },
        },
      ],
      memory: { sizeInMB: 16_384 },
      os: { family: 'debian', version: '12', kernel: 'Linux', kernelVersion: '6.1.0-28-amd64' },
    },
    hostInfo: { hostState: 'registration', hostType: 'agent-mode', secureBoot: true },
    managementMode: 'local',
    networkInfo: [
      {
        nicName: 'enx0050b6000001',
        macAddr: '00:50:b6:00:00:01',
        ip: '192.168.5.20',
        subnet: '255.255.255.0',
        isDefault: false,
        dns: [],
      },
      {
        nicName: 'wlp0s20f3',
        macAddr: '3c:58:c2:00:00:02',
        ip: '192.168.43.17',
        subnet: '255.255.255.0',
        gateway: '192.168.43.254',
        isDefault: true,
        dns: ['192.168.43.254'],
      },
      { nicName: 'wwan0', isDefault: false, dns: [] },
      { nicName: 'wg0', ip: '10.9.0.2', subnet: '255.255.0.0', isDefault: false, dns: [] },
    ],
  })
  expect(status).toMatchObject({
    dns: {
      nameservers: ['192.168.43.254', '10.9.0.1'],
      options: ['edns0', 'trust-ad'],
      searchDomains: ['field.example'],
    },
    hostName: 'field-laptop',
    ntp: {
      ntpServers: [],
      fallbackNtpServers: ['0.debian.pool.ntp.org', '1.debian.pool.ntp.org'],
      pollIntervalMaxSec: '2048',
    },
  })
  expect(status.conditions).toBeUndefined()
})

it('the facts of a rack server with md, bond, VLAN and bridge are right', async () => {
  const { metadata, spec, status } = await replyOf('rack-server', {
    br0: ['10.0.0.7', '255.255.0.0'],
    'bond0.40': ['192.168.40.7', '255.255.192.0'],
    cni0: ['10.42.0.1', '255.255.255.0'],
  })
  expect(metadata.id).toBe('edge-4c4c4544005235108051b7c04f4a3333')
  expect(spec.hardwareSpec.cpu).toEqual({ cores: 64 })
  expect(
    spec.hardwareSpec.disks.map(({ controller, partitions }) => [
      controller,
      ...partitions.map(({ mountPoint }) => mountPoint),
    ]),
  ).toEqual([['SCSI', '/srv/shop data'], ['SATA'], ['NVME', '/', '/boot/efi'], ['NVME', '/']])
  expect(spec.networkInfo.map(({ nicName, isDefault, dns }) => [nicName, isDefault, ...dns])).toEqual([
    ['eno1', false],
    ['eno2', false],
    ['bond0', false],
    ['bond0.40', false],
    ['br0', true, '10.0.0.53', '10.0.0.54', 'fd00::53'],
  ])
  expect(spec.hostInfo).toEqual({ hostState: 'registration', hostType: 'agent-mode' })
  expect(status.dns.nameservers).toEqual(['10.0.0.53', '10.0.0.54'])
})

it('the facts of a board with eMMC and no DMI are right', async () => {
  const { metadata, spec } = await replyOf('single-board', {}, { arch: 'arm64' })
  expect(metadata.id).toMatch(/^edge-[0-9a-f]{32}$/)
  expect(spec.hardwareSpec).toMatchObject({
    archType: 'arm64',
    disks: [{ controller: 'MMC', partitions: [{ mountPoint: '/', ...space }] }],
    gpus: [],
  })
  expect(spec.networkInfo.map(({ nicName, ip, isDefault }) => [nicName, ip, isDefault])).toEqual([
    ['eth0', undefined, false],
    ['wlan0', '2001:db8::10', true],
  ])
})

it('the facts of a host with two NVIDIA cards and one of AMD are right', async () => {
  const { metadata, spec } = await replyOf('gpu-host', {})
  // Neither the shared UUID nor a placeholder serial makes an identity.
  expect(metadata.id).not.toContain('03000200')
  expect(
    spec.hardwareSpec.gpus.map(({ vendor, gpuCount, memory, migStrategy }) => [
      vendor,
      gpuCount,
      memory,
      migStrategy,
    ]),
  ).toEqual([
    ['ASPEED', 1, undefined, undefined],
    ['NVIDIA', 2, '40960 MiB', 'none'],
    ['AMD', 1, '30704 MiB', undefined],
  ])
})
