import type {
  ConnectivityCheck,
  FileMetadataList,
  LogEntry,
  PingResponse,
  TraceRouteResponse,
} from '../../src/diagnosis/schemas.ts'

const files: FileMetadataList = {
  files: [
    {
      fileName: 'press-core.1403.zst',
      size: '18349212',
      creationTimestamp: '2026-01-31T09:31:00.000Z',
      lastModifiedTimestamp: '2026-01-31T09:31:02.000Z',
    },
  ],
}

const pinged: PingResponse = {
  pingHostStatus:
    'PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.053 ms\n\n--- 192.0.2.1 ping statistics ---\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\nrtt min/avg/max/mdev = 0.053/0.053/0.053/0.000 ms\n',
  result: {
    target: '192.0.2.1',
    address: '192.0.2.1',
    isReachable: true,
    transmitted: 1,
    received: 1,
    roundTrip: { minMs: 0.053, averageMs: 0.053, maxMs: 0.053 },
    errors: [],
  },
}
const traced: TraceRouteResponse = {
  traceRouteStatus:
    'traceroute to 198.51.100.7 (198.51.100.7), 30 hops max, 60 byte packets\n 1  192.0.2.1  0.401 ms  0.392 ms\n 2  198.51.100.7  3.512 ms  3.498 ms\n',
  result: {
    target: 'registry.plant.example',
    address: '198.51.100.7',
    isReachable: true,
    hops: [
      { number: 1, addresses: ['192.0.2.1'], timesMs: [0.401, 0.392] },
      { number: 2, addresses: ['198.51.100.7'], timesMs: [3.512, 3.498] },
    ],
  },
}
const checked: ConnectivityCheck = {
  target: 'registry.plant.example:5000',
  kind: 'tcp',
  isOk: false,
  stages: [
    { name: 'dns', status: 'ok', durationMs: 3, message: 'registry.plant.example is 198.51.100.7' },
    {
      name: 'tcp',
      status: 'failed',
      durationMs: 2,
      message: '198.51.100.7:5000: connection refused (ECONNREFUSED)',
    },
  ],
  next: 'nothing listens on port 5000 there, or a firewall rejects it: start the service, or correct the port',
}

const entry: LogEntry = {
  time: '2026-01-31T09:31:00.000Z',
  unit: 'kubelet',
  priority: 'err',
  message: 'E0131 09:31:00.000002 1 kubelet.go:2] failed to pull https://anna:********@registry.example/x',
  cursor: 's=0639b8f1c1d94d1c9b7a1f2e3d4c5b6a;i=4f2;b=1f;m=2a;t=3b;x=4c',
}

/** Replies of the diagnosis of a host, by the names of its operations. */
export const diagnosisExamples: Readonly<Record<string, { readonly reply: unknown }>> = {
  readLogs: { reply: `${JSON.stringify(entry)}\n` },
  listFiles: { reply: files },
  pingEndpoint: { reply: pinged },
  traceRoute: { reply: traced },
  generateLogs: {
    reply: { message: 'the archive is being made', uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44' },
  },
  getGenerateLogsStatus: {
    reply: {
      status: 'Completed',
      msg: 'the archive is ready',
      uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
    },
  },
  checkConnectivity: { reply: checked },
}
