import { Type, type Static } from 'typebox'
import { ClusterTemplate } from './clusters.ts'
import { AnnotationsEntity, LabelsEntity, ObjectMeta } from './metadata.ts'

// Wire types of hosts, used by the platform and by the hosts that connect to it. Sizes and counts are whole numbers.

const text = (maxLength = 256) => Type.Optional(Type.String({ maxLength }))
// The database gives back only numbers that are exact.
const count = (description?: string) =>
  Type.Optional(
    Type.Integer({
      ...{ minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      ...(description === undefined ? {} : { description }),
    }),
  )

const Partition = Type.Object({
  fileSystemType: text(),
  freeSpace: count('GiB.'),
  mountPoint: text(4_096),
  totalSpace: count('GiB.'),
  usedSpace: count('GiB.'),
})

/** What a host is. */
export const DeviceSpec = Type.Object(
  {
    archType: Type.Optional(Type.Enum(['amd64', 'arm64'])),
    cpu: Type.Optional(Type.Object({ cores: count() })),
    disks: Type.Optional(
      Type.Array(
        Type.Object({
          controller: text(),
          partitions: Type.Optional(Type.Array(Partition, { maxItems: 256 })),
          size: count('GiB.'),
          vendor: text(),
        }),
        { maxItems: 256 },
      ),
    ),
    gpus: Type.Optional(
      Type.Array(
        Type.Object({
          addresses: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 64 }))),
          gpuCount: count(),
          memory: text(),
          migCapable: Type.Optional(Type.Boolean()),
          migStrategy: text(),
          model: text(),
          vendor: text(),
        }),
        { maxItems: 64 },
      ),
    ),
    hostState: Type.Optional(Type.Enum(['registration', 'cluster', 'recovery'])),
    hostType: Type.Optional(Type.Enum(['appliance', 'agent-mode'])),
    memory: Type.Optional(Type.Object({ sizeInMB: count() })),
    nics: Type.Optional(
      Type.Array(
        Type.Object({
          dns: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 16 })),
          gateway: text(64),
          ip: text(64),
          isDefault: Type.Optional(Type.Boolean()),
          macAddr: text(64),
          nicName: text(64),
          subnet: text(64),
        }),
        { maxItems: 512 },
      ),
    ),
    os: Type.Optional(
      Type.Object({ family: text(), kernel: text(), kernelVersion: text(), version: text() }),
    ),
    secureBoot: Type.Optional(Type.Boolean()),
  },
  { title: 'DeviceSpec' },
)
export type DeviceSpec = Static<typeof DeviceSpec>

/** The heartbeat of a host. */
export const EdgeHostHealth = Type.Object(
  {
    agentVersion: text(64),
    message: text(1_024),
    state: Type.Enum(['healthy', 'unhealthy']),
  },
  { title: 'EdgeHostHealth' },
)
export type EdgeHostHealth = Static<typeof EdgeHostHealth>

const HostUid = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
  accepts: 'at most 128 letters, digits, dots, dashes and underscores; the first a letter or digit',
  description: 'The id that the host gives itself.',
})
const ServiceSpec = Type.Object({ name: text(64), version: text(64) })

/** A host in the body of a registration. */
export const EdgeHostRegistration = Type.Object({
  metadata: Type.Object({
    name: Type.String({
      pattern: '^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$',
      accepts: 'the name of a host',
    }),
    labels: Type.Optional(LabelsEntity),
    annotations: Type.Optional(AnnotationsEntity),
  }),
  spec: Type.Object({
    device: Type.Optional(DeviceSpec),
    host: Type.Object({
      hostUid: HostUid,
      hostAddress: Type.String({ maxLength: 64 }),
      macAddress: text(64),
      hostAuthToken: Type.String({ maxLength: 256, description: 'The registration token.' }),
      hostChecksum: text(128),
      hostIdentity: Type.Object({
        mode: Type.Literal('signature'),
        publicKey: Type.String({
          pattern: '^[A-Za-z0-9_-]{43}$',
          accepts: 'the 32 bytes of an Ed25519 key as base64url',
        }),
      }),
    }),
    service: Type.Optional(ServiceSpec),
  }),
})
export type EdgeHostRegistration = Static<typeof EdgeHostRegistration>

/** What a host reports of itself after its registration. */
export const EdgeHostFacts = Type.Object(
  {
    metadata: Type.Optional(Type.Object({ name: text(), uid: text(64) })),
    spec: Type.Object({
      device: DeviceSpec,
      host: Type.Object({
        hostUid: Type.Optional(HostUid),
        hostAddress: Type.String({ maxLength: 64 }),
        macAddress: text(64),
        hostChecksum: text(128),
      }),
      service: Type.Optional(ServiceSpec),
    }),
  },
  { title: 'EdgeHostFacts' },
)
export type EdgeHostFacts = Static<typeof EdgeHostFacts>

/** Labels and annotations of a host in a request. */
export const EdgeHostMetaUpdate = Type.Object(
  {
    metadata: Type.Object({
      annotations: Type.Optional(AnnotationsEntity),
      creationTimestamp: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
      labels: Type.Optional(LabelsEntity),
      name: text(),
      uid: text(64),
    }),
    status: Type.Optional(
      Type.Unknown({
        description: 'Cannot be changed; health, which changes each minute, is not looked at.',
      }),
    ),
  },
  { title: 'EdgeHostDeviceMetaUpdateEntity' },
)
export type EdgeHostMetaUpdate = Static<typeof EdgeHostMetaUpdate>

/** A host in replies. */
export const EdgeHostDevice = Type.Object(
  {
    aclmeta: Type.Object({ projectUid: Type.String(), tenantUid: Type.String() }),
    metadata: ObjectMeta,
    spec: Type.Object({
      clusterProfileTemplates: Type.Optional(
        Type.Array(ClusterTemplate, {
          description: 'What the cluster of the host runs; of one host only, with resolvePackValues=true.',
        }),
      ),
      device: DeviceSpec,
      host: Type.Object({
        hostUid: Type.String(),
        hostAddress: Type.String(),
        macAddress: Type.Optional(Type.String()),
        hostChecksum: Type.Optional(Type.String()),
        hostIdentity: Type.Object({ mode: Type.String(), publicKey: Type.String() }),
      }),
      service: ServiceSpec,
      type: Type.Literal('edge-native'),
    }),
    status: Type.Object({
      health: Type.Optional(
        Type.Object(
          {
            agentVersion: Type.String(),
            lastHeartbeatTimestamp: Type.String({ format: 'date-time' }),
            message: Type.String(),
            state: Type.Enum(['healthy', 'unhealthy']),
          },
          { description: 'Absent before the first heartbeat. After three minutes without one, unhealthy.' },
        ),
      ),
      inUseClusters: Type.Optional(
        Type.Array(Type.Object({ name: Type.String(), uid: Type.String() }), {
          description: 'The cluster of the host.',
        }),
      ),
      isDuplicate: Type.Optional(
        Type.Boolean({
          description: 'Two hosts have this key: its logins are refused until an administrator chooses.',
        }),
      ),
      state: Type.Enum(['ready', 'unpaired', 'in-use']),
    }),
  },
  { title: 'EdgeHostDevice' },
)
export type EdgeHostDevice = Static<typeof EdgeHostDevice>

/** A host in the reply to its registration: the whole record for a token of its project, otherwise what the host needs to log in. */
export const RegisteredEdgeHost = Type.Object(
  {
    aclmeta: EdgeHostDevice.properties.aclmeta,
    metadata: Type.Object({ ...Type.Partial(ObjectMeta).properties, uid: ObjectMeta.properties.uid }),
    spec: Type.Optional(EdgeHostDevice.properties.spec),
    status: Type.Optional(EdgeHostDevice.properties.status),
  },
  { title: 'RegisteredEdgeHost' },
)

/** The body of a login of a host: first without the proof, then with it. */
export const EdgeLogin = Type.Object({
  edgeHostUid: Type.String({ minLength: 1, maxLength: 64 }),
  edgeAuthToken: Type.Optional(
    Type.String({
      maxLength: 2_048,
      description: 'A compact JWS (EdDSA, typ edge-login+jwt) over sub, nonce and gen.',
    }),
  ),
})
export type EdgeLogin = Static<typeof EdgeLogin>

export const EdgeLoginReply = Type.Object(
  {
    Authorization: Type.String({ description: 'Valid for 15 minutes.' }),
    hostChecksum: Type.Optional(
      Type.String({ description: 'Of what the platform knows of the host; the host reports if it differs.' }),
    ),
    generation: Type.Integer({
      description: 'To be stored before the token is used, and to be named at the next login.',
    }),
  },
  { title: 'EdgeLoginReply' },
)
export type EdgeLoginReply = Static<typeof EdgeLoginReply>

/** A host in a table. */
export const EdgeHostMeta = Type.Object(
  {
    archType: Type.Optional(Type.Enum(['amd64', 'arm64'])),
    edgeHostType: Type.Literal('edge-native'),
    healthState: Type.Optional(
      Type.String({ description: 'healthy or unhealthy; absent before the first heartbeat.' }),
    ),
    name: Type.String(),
    state: Type.Enum(['ready', 'in-use']),
    uid: Type.String(),
  },
  { title: 'EdgeHostMeta' },
)
export type EdgeHostMeta = Static<typeof EdgeHostMeta>
