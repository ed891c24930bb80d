import { Type, type Static } from 'typebox'

// Wire types. Names and spellings are the service API's; a field that the machine has no value for is absent.

const text = (description: string) => Type.Optional(Type.String({ description }))
const count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))
const time = (description: string) => Type.String({ format: 'date-time', description })

const Partition = Type.Object({
  fileSystemType: Type.String({ description: 'For example ext4.' }),
  freeSpace: count('Whole GiB a user can still write.'),
  mountPoint: Type.String(),
  totalSpace: count('Whole GiB.'),
  usedSpace: count('Whole GiB.'),
})

const Disk = Type.Object({
  controller: text('Bus of the disk: SCSI, NVME, SATA, VIRTIO, USB or MMC.'),
  partitions: Type.Array(Partition, { description: 'Every mounted file system on the disk.' }),
  size: Type.Integer({ minimum: 0, description: 'Whole GiB.' }),
  vendor: text('As the disk reports it.'),
})

const Gpu = Type.Object({
  addresses: Type.Record(Type.String(), Type.String(), {
    description: 'Number to PCI address with underscores, for example 0000_11_00_0.',
  }),
  gpuCount: Type.Integer({ minimum: 1 }),
  memory: text('Of each, for example 40960 MiB.'),
  migCapable: Type.Optional(
    Type.Boolean({ description: 'Whether they can be divided into instances (MIG).' }),
  ),
  migStrategy: text('none, single or mixed.'),
  model: text('As the driver reports it, otherwise the name in pci.ids.'),
  vendor: text('For example NVIDIA.'),
})

const HostInfo = Type.Object({
  hostState: Type.Enum(['registration', 'cluster'], {
    description: 'cluster while this host has a cluster, otherwise registration.',
  }),
  hostType: Type.Enum(['agent-mode'], {
    description: 'edgehostd runs on an operating system of its own, not as an appliance.',
  }),
  secureBoot: Type.Optional(
    Type.Boolean({ description: 'Whether UEFI Secure Boot was on at the start; absent without EFI.' }),
  ),
})

const HardwareSpec = Type.Object({
  archType: Type.String({ description: 'amd64 or arm64.' }),
  cpu: Type.Object({ cores: count('Processors that are online.') }),
  disks: Type.Array(Disk),
  gpus: Type.Array(Gpu),
  memory: Type.Object({ sizeInMB: count('Whole MiB.') }),
  os: Type.Object({
    family: text('ID of os-release, for example debian.'),
    kernel: text('For example Linux.'),
    kernelVersion: text('Release of the running kernel.'),
    version: text('VERSION_ID of os-release, for example 12.'),
  }),
})

export const Nic = Type.Object({
  dns: Type.Array(Type.String(), { description: 'Name servers asked over this interface.' }),
  gateway: text("Gateway of this interface's default route."),
  ip: text('Primary IPv4 address, otherwise the IPv6 address.'),
  isDefault: Type.Boolean({ description: 'Whether the default route uses this interface.' }),
  isManagement: Type.Optional(
    Type.Boolean({ description: 'Whether it is chosen as management interface; absent where it is not.' }),
  ),
  macAddr: text('For example 02:fc:00:00:00:01.'),
  nicName: Type.String(),
  subnet: text('IPv4: dotted mask. IPv6: length of the prefix.'),
})
/** A network interface. */
export type Nic = Static<typeof Nic>

const Condition = Type.Object({
  message: Type.String(),
  reason: Type.String(),
  status: Type.String({ description: 'True, False or Unknown.' }),
  type: Type.String({
    description: 'The fact that could not be read, whose value is the last known one; or Platform.',
  }),
})

/** Reply of `GET /v1/edge-mgmt/edgehosts/current`. */
export const EdgeHostInfo = Type.Object(
  {
    metadata: Type.Object({
      creationTimestamp: time('When the host got its id.'),
      id: Type.String({ description: 'Identity of the host; stays for its life.' }),
      lastModifiedTimestamp: time('When a fact last changed; used and free space do not count.'),
      name: Type.String(),
      labels: Type.Record(Type.String(), Type.String(), {
        description: 'Empty: the platform has the labels of hosts.',
      }),
      tags: Type.Record(Type.String(), Type.Unknown(), { description: 'Empty, as labels are.' }),
    }),
    spec: Type.Object({
      connectionMode: Type.String({ description: 'airgap or connected.' }),
      hardwareSpec: HardwareSpec,
      hostInfo: HostInfo,
      managementMode: Type.String({ description: 'local or central.' }),
      networkInfo: Type.Array(Nic),
      platformEndpointURL: text('URL of the platform, in connected mode.'),
      nodeRole: Type.String({
        description:
          'init until the control plane of the cluster is set up, then controlplane; unknown without a cluster.',
      }),
    }),
    status: Type.Object({
      agentVersion: Type.String({ description: 'Version of edgehostd.' }),
      conditions: Type.Optional(
        Type.Array(Condition, {
          description:
            'Facts that could not be read; and Platform, where this host is not connected to its platform.',
        }),
      ),
      configurationStatus: Type.String({
        description:
          'pending without a cluster, inprogress until it runs and while it is deleted, configured.',
      }),
      dns: Type.Object({
        nameservers: Type.Array(Type.String()),
        options: Type.Array(Type.String()),
        searchDomains: Type.Array(Type.String()),
      }),
      hostName: text('The current host name.'),
      isClusterPhase: Type.Boolean({ description: 'Whether this host has a cluster.' }),
      ntp: Type.Object({
        connectionRetrySec: text('Seconds before a server that did not answer is asked again.'),
        fallbackNtpServers: Type.Array(Type.String()),
        ntpServers: Type.Array(Type.String()),
        pollIntervalMaxSec: text('Seconds, for example 2048.'),
        pollIntervalMinSec: text('Seconds, for example 32.'),
        rootDistanceMaxSec: text('Largest accepted distance to the reference clock, in seconds.'),
        saveIntervalSec: text('Seconds between two saves of the clock to disk.'),
      }),
      registrationStatus: Type.String({
        description:
          'not applicable in airgap mode; pending, registered, removed, or duplicate, where another machine uses the key of this host.',
      }),
    }),
  },
  { title: 'EdgeHostInfo' },
)
export type EdgeHostInfo = Lasting<Static<typeof EdgeHostInfo>>

/** The same type, read-only at every depth. */
type Lasting<T> = T extends object ? { readonly [Key in keyof T]: Lasting<T[Key]> } : T

const bytes = Type.Integer({ minimum: 0 })
const average = Type.Number({ minimum: 0 })

/** Reply of `GET /v1/edge-mgmt/edgehosts/current/usage`. */
export const HostUsage = Type.Object(
  {
    uptimeSeconds: Type.Optional(Type.Integer({ minimum: 0, description: 'Since the boot of the host.' })),
    load: Type.Optional(
      Type.Object(
        { oneMinute: average, fiveMinutes: average, fifteenMinutes: average },
        { description: 'Averages of the tasks that run or wait; compare with the processors.' },
      ),
    ),
    memory: Type.Optional(
      Type.Object(
        { totalBytes: bytes, usedBytes: bytes, availableBytes: bytes },
        { description: 'usedBytes without caches.' },
      ),
    ),
    clock: Type.Object({
      isSynchronized: Type.Optional(
        Type.Boolean({
          description:
            'Whether a time server has set the clock since the boot, with systemd-timesyncd; whether chronyd follows a source, up to five minutes old; absent where another time service runs, whose state is not known.',
        }),
      ),
    }),
    fileSystems: Type.Array(
      Type.Object({ mountPoint: Type.String(), totalBytes: bytes, usedBytes: bytes, freeBytes: bytes }),
      { description: 'Of the disks of the document of the host, up to five minutes old.' },
    ),
    links: Type.Array(
      Type.Object({
        name: Type.String(),
        state: Type.String({
          description: 'As the kernel has it: up, down (no cable), dormant, lowerlayerdown, unknown.',
        }),
      }),
    ),
  },
  { title: 'HostUsage' },
)
export type HostUsage = Static<typeof HostUsage>

/** Reply of `GET /v1/edge-mgmt/settings`. */
export const Settings = Type.Object(
  {
    featureFlags: Type.Record(Type.String(), Type.Boolean()),
    installationMode: Type.Union([Type.Literal('airgap'), Type.Literal('connected')]),
    managementMode: Type.Union([Type.Literal('local'), Type.Literal('central')]),
  },
  { title: 'Settings' },
)
export type Settings = Static<typeof Settings>
