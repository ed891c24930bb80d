import { Type, type Static } from 'typebox'
import { ignored, refused, setByPlatform, type FieldStance } from '../../base/field-stance.ts'
import { PacksStatus } from '../clusters/schemas.ts'
import { ClusterTemplate } from '../clusters/schemas.ts'
import { AnnotationsEntity, LabelsEntity, ObjectMeta, timesOfReply } from '../schemas.ts'

// Wire types of hosts, used by the platform and by the hosts that connect to it. Sizes and counts are whole numbers.

const text = (maxLength = 256, about: FieldStance | object = {}) =>
  Type.Optional(Type.String({ ...about, maxLength }))
// The database gives back only numbers that are exact.
const count = (description?: string) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
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

/** Facts of a host. */
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

const fieldsOfReply = {
  aclmeta: Type.Optional(Type.Unknown(setByPlatform)),
  status: Type.Optional(Type.Unknown(ignored('heartbeats and reports say how a host is'))),
}
const specOfReply = {
  cloudProperties: Type.Optional(Type.Unknown(refused('a host belongs to no cloud'))),
  clusterProfileTemplates: Type.Optional(Type.Unknown(ignored('the cluster of a host has them'))),
  properties: Type.Optional(Type.Unknown(refused('labels and annotations hold further properties'))),
  type: Type.Optional(Type.Enum(['edge-native', ''], { description: 'Every host has this one type.' })),
  version: text(64, ignored('spec.service.version is the version')),
}
const hostOfReply = {
  disableAutoRegister: Type.Optional(Type.Boolean(refused('a host that shall not register has no platform'))),
  hostPairingKey: text(256, refused('hosts prove themselves by their key')),
  project: Type.Optional(Type.Unknown(refused('the registration token names the project'))),
  remoteSsh: text(64, refused('the platform opens no shell on hosts', 'disabled')),
}

/** A host in the body of a registration. */
export const EdgeHostRegistration = Type.Object({
  ...fieldsOfReply,
  metadata: Type.Object({
    name: Type.String({
      pattern: '^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$',
      accepts: 'the name of a host',
    }),
    labels: Type.Optional(LabelsEntity),
    annotations: Type.Optional(AnnotationsEntity),
    creationTimestamp: Type.Optional(Type.Unknown(setByPlatform)),
    uid: Type.Optional(Type.Unknown(setByPlatform)),
    ...timesOfReply,
  }),
  spec: Type.Object({
    ...specOfReply,
    device: Type.Optional(DeviceSpec),
    host: Type.Object({
      ...hostOfReply,
      hostUid: HostUid,
      hostAddress: Type.String({ maxLength: 64 }),
      macAddress: text(64),
      hostAuthToken: Type.String({ maxLength: 256, description: 'The registration token.' }),
      hostChecksum: text(128),
      hostIdentity: Type.Object({
        caCert: text(16_384, refused('a host proves itself by its key')),
        mode: Type.Literal('signature'),
        socketPath: text(4_096, refused('a host proves itself by its key')),
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

/** Facts that a host reports after its registration. */
export const EdgeHostFacts = Type.Object(
  {
    ...fieldsOfReply,
    metadata: Type.Optional(
      Type.Object({
        name: text(),
        uid: text(64),
        labels: Type.Optional(LabelsEntity),
        annotations: Type.Optional(AnnotationsEntity),
        creationTimestamp: text(64),
        ...timesOfReply,
      }),
    ),
    spec: Type.Object({
      ...specOfReply,
      device: DeviceSpec,
      host: Type.Object({
        ...hostOfReply,
        hostAuthToken: text(256, ignored('a host that is registered needs no token')),
        hostIdentity: Type.Optional(Type.Unknown(ignored('the key of the registration stays'))),
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
        description: 'Cannot be changed; health, which changes each minute, is ignored.',
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
          description: 'Profiles of the cluster of the host; of one host only, with resolvePackValues=true.',
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
      packs: Type.Optional({
        ...PacksStatus.properties.packs,
        description:
          'Rollout state of the packs of its cluster, as the host reports it; of one host only, not in lists.',
      }),
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
    projectName: Type.Optional(Type.String({ description: 'Name of its project, to be shown.' })),
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
      Type.String({
        description: 'Checksum of the known facts of the host; the host reports if it differs.',
      }),
    ),
    generation: Type.Integer({
      description: 'To be stored before the token is used, and to be named at the next login.',
    }),
    projectName: Type.Optional(
      Type.String({
        description: 'Name of the project of the host, for people; absent where it is of the tenant.',
      }),
    ),
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
