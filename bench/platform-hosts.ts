// The hosts of the benchmarks of the platform, by their number. Pure.

export const uidOf = (index: number) => `018bcfe5-6800-7000-8000-${String(index).padStart(12, '0')}`

/** An address of 127.0.0.0/8 for each of up to 15 million hosts, none of them that of a server. */
export const addressOf = (index: number) =>
  `127.${1 + Math.floor(index / 62_500)}.${Math.floor(index / 250) % 250}.${1 + (index % 250)}`

/** What a host reports, other facts for another change. */
export const factsOf = (index: number, change: number) => ({
  spec: {
    device: {
      ...{ archType: index % 20 === 0 ? 'arm64' : 'amd64', cpu: { cores: 4 + (index % 8) } },
      memory: { sizeInMB: 8_192 + change },
      os: { family: 'debian', kernel: 'linux', kernelVersion: '6.12.1', version: String(11 + (index % 3)) },
      nics: ['eth0', 'eth1'].map((nicName) => ({ nicName, macAddr: '00:11:22:33:44:55', ip: '192.0.2.7' })),
      disks: [{ size: 500, vendor: 'ACME', controller: 'nvme' }],
    },
    service: { name: 'edgehostd', version: `1.3.${change % 5}` },
    host: { hostAddress: `192.0.2.${index % 250}`, hostChecksum: String(change).padStart(64, '0') },
  },
})
