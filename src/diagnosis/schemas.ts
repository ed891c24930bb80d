import { Type, type Static } from 'typebox'

// Wire names of the published API.

const Timestamp = Type.String({ format: 'date-time' })

export const FileMetadata = Type.Object({
  fileName: Type.String(),
  size: Type.String({ description: 'Bytes, as decimal text.' }),
  creationTimestamp: Timestamp,
  lastModifiedTimestamp: Timestamp,
})
/** A file that may be downloaded. */
export type FileMetadata = Static<typeof FileMetadata>

export const FileMetadataList = Type.Object({
  files: Type.Array(FileMetadata, { description: 'By name.' }),
  omitted: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Entries of the folder that are not offered: folders, links, pipes, devices, files with a second hard link or with a name that is not UTF-8, and all beyond 10,000.',
    }),
  ),
})
export type FileMetadataList = Static<typeof FileMetadataList>

const next = Type.Optional(
  Type.String({ description: 'The next thing to do; absent where nothing is wrong.' }),
)

/** What `structured=true` adds to a ping. */
export const PingResult = Type.Object({
  target: Type.String({ description: 'The name or address that was asked for.' }),
  address: Type.Optional(Type.String({ description: 'The pinged address; absent where the name has none.' })),
  isReachable: Type.Boolean({ description: 'Whether there was a reply.' }),
  transmitted: Type.Integer(),
  received: Type.Integer(),
  roundTrip: Type.Optional(
    Type.Object({ minMs: Type.Number(), averageMs: Type.Number(), maxMs: Type.Number() }),
  ),
  errors: Type.Array(Type.String(), { description: 'What routers and this host have said.' }),
  next,
})

export const PingResponse = Type.Object({
  pingHostStatus: Type.String({ description: 'The output of ping.' }),
  result: Type.Optional(PingResult),
})
export type PingResponse = Static<typeof PingResponse>

export const Hop = Type.Object({
  number: Type.Integer({ description: 'From 1.' }),
  addresses: Type.Array(Type.String(), { description: 'Empty where none has answered.' }),
  timesMs: Type.Array(Type.Number(), { description: 'Of each answer.' }),
  mark: Type.Optional(
    Type.String({ description: 'Why it ended there, as traceroute(8) has it: !H, !N, !X.' }),
  ),
})

/** What `structured=true` adds to a traceroute. */
export const TraceRouteResult = Type.Object({
  target: PingResult.properties.target,
  address: PingResult.properties.address,
  isReachable: Type.Boolean({ description: 'Whether the target itself has answered.' }),
  hops: Type.Array(Hop),
  next,
})

export const TraceRouteResponse = Type.Object({
  traceRouteStatus: Type.String({ description: 'The output of traceroute.' }),
  result: Type.Optional(TraceRouteResult),
})
export type TraceRouteResponse = Static<typeof TraceRouteResponse>

/** Kinds of checks of a connection. */
export const CheckKind = Type.Union([
  Type.Literal('dns'),
  Type.Literal('tcp'),
  Type.Literal('tls'),
  Type.Literal('mtu'),
  Type.Literal('registry'),
  Type.Literal('platform'),
])
export type CheckKind = Static<typeof CheckKind>

export const CheckStage = Type.Object({
  name: Type.String({ description: 'dns, tcp, tls, http, ping, mtu; of a platform name, route, tls, http.' }),
  status: Type.Union([Type.Literal('ok'), Type.Literal('failed')]),
  durationMs: Type.Integer(),
  message: Type.String(),
})
export type CheckStage = Static<typeof CheckStage>

export const ConnectivityCheck = Type.Object({
  target: Type.String(),
  kind: CheckKind,
  isOk: Type.Boolean(),
  stages: Type.Array(CheckStage, { description: 'In their order; the first one that fails is the last.' }),
  next,
})
export type ConnectivityCheck = Static<typeof ConnectivityCheck>

export const LogsAccepted = Type.Object({
  message: Type.String(),
  uid: Type.String({ description: 'Of the archive that is made.' }),
})

export const LogsStatus = Type.Object({
  status: Type.Union(
    [Type.Literal('Unknown'), Type.Literal('InProgress'), Type.Literal('Completed'), Type.Literal('Failed')],
    { description: 'Unknown: none was generated, or its time is over.' },
  ),
  msg: Type.String(),
  uid: Type.Optional(LogsAccepted.properties.uid),
})
export type LogsStatus = Static<typeof LogsStatus>

/** Whose logs are shown; steps are those of the cluster. */
export const logUnits = ['edgehostd', 'kubelet', 'containerd', 'kernel', 'steps'] as const
export type LogUnit = (typeof logUnits)[number]

export const LogEntry = Type.Object({
  time: Type.String({
    format: 'date-time',
    description: 'Of a line of a step, the begin of the step.',
  }),
  unit: Type.String({ description: 'The unit without .service; kernel, or steps.' }),
  priority: Type.String({ description: 'emerg, alert, crit, err, warning, notice, info or debug.' }),
  message: Type.String(),
  cursor: Type.String({ description: 'Place of the entry in the journal; empty for steps.' }),
})
export type LogEntry = Static<typeof LogEntry>
