import { join } from 'node:path'
import Type from 'typebox'
import { parseJson } from '../base/json.ts'
import { Uid } from '../base/uid.ts'
import { defineProgramVerb, VerbRefused } from '../verbs/verb.ts'

/** What a program of a diagnosis has said. */
export interface Said {
  /** Its output, as on a terminal. */
  readonly text: string
  readonly exitCode: number | undefined
}

/** A user of its own, and no right but to send and receive ICMP. A program with rights of its own in its file gets no more by it. */
const onlyRaw = [
  'DynamicUser=yes',
  'AmbientCapabilities=CAP_NET_RAW',
  'CapabilityBoundingSet=CAP_NET_RAW',
  ...['NoNewPrivileges=yes', 'ProtectSystem=strict', 'ProtectHome=yes', 'PrivateDevices=yes'],
  ...['ProtectClock=yes', 'ProtectControlGroups=yes', 'ProtectHostname=yes', 'ProtectKernelLogs=yes'],
  ...['ProtectKernelModules=yes', 'ProtectKernelTunables=yes', 'ProtectProc=invisible'],
  ...['RestrictNamespaces=yes', 'RestrictRealtime=yes', 'LockPersonality=yes', 'MemoryDenyWriteExecute=yes'],
  'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK',
  ...['SystemCallArchitectures=native', 'SystemCallFilter=@system-service'],
  ...['MemoryMax=64M', 'TasksMax=8', 'KillSignal=SIGKILL'],
]

/** Longest time of a diagnosis, milliseconds. */
export const diagnosisMs = 30_000

// A number, never a name: the program asks no resolver, and its output has no text of one.
const Address = Type.String({
  maxLength: 62,
  pattern: '^([0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]{1,15})?)$',
})

const read =
  (program: string, packageName: string) =>
  ({ stdout, stderr, exitCode }: { stdout: string; stderr: string; exitCode: number | undefined }): Said => {
    // systemd-run finds no such program, or its unit cannot execute it (systemd.exec(5), "Process Exit Codes").
    if (exitCode !== 0 && (exitCode === 203 || /^Failed to find executable/m.test(stderr)))
      throw new VerbRefused(notInstalled(program, packageName))
    return { text: [stdout, stderr].filter((each) => each !== '').join('\n'), exitCode }
  }

/** The refusal for a program that is not there. */
export const notInstalled = (program: string, packageName: string): string =>
  `${program} is not installed on this host; install the package ${packageName}`

/** Packages of Debian. */
export const packageOf = { ping: 'iputils-ping', traceroute: 'traceroute' } as const

/** Sends ICMP echo requests to an address; with a size, packets of it that routers may not divide. */
export const ping = defineProgramVerb({
  name: 'ping-address',
  role: 'admin',
  input: Type.Object(
    {
      address: Address,
      count: Type.Integer({ minimum: 1, maximum: 10 }),
      payloadBytes: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_507 })),
    },
    { additionalProperties: false },
  ),
  unit: { description: 'ping', timeoutMs: diagnosisMs, properties: onlyRaw },
  audit: ({ address }) => `ping ${address}`,
  command: ({ address, count, payloadBytes }) => ({
    program: 'ping',
    args: [
      ...['-n', '-c', String(count), '-i', '0.5', '-W', '2', '-w', String(count + 3)],
      ...(payloadBytes === undefined ? [] : ['-M', 'do', '-s', String(payloadBytes)]),
      ...['--', address],
    ],
  }),
  read: read('ping', packageOf.ping),
})

/** Finds the routers on the way to an address, by ICMP, which fewer firewalls drop than the UDP of its default. */
export const traceroute = defineProgramVerb({
  name: 'trace-route',
  role: 'admin',
  input: Type.Object({ address: Address }, { additionalProperties: false }),
  unit: { description: 'traceroute', timeoutMs: diagnosisMs, properties: onlyRaw },
  audit: ({ address }) => `traceroute ${address}`,
  command: ({ address }) => ({
    program: 'traceroute',
    args: ['-n', '-I', '-q', '2', '-w', '2', '-m', '30', '--', address],
  }),
  read: read('traceroute', packageOf.traceroute),
})

/** Makes the support archive in the folder `support` of the state folder, by the program of `edgehostctl support`. */
export const makeSupportArchive = defineProgramVerb({
  name: 'make-support-archive',
  role: 'admin',
  input: Type.Object({ uid: Uid, limitBytes: Type.Integer({ minimum: 1 }) }, { additionalProperties: false }),
  unit: {
    description: 'support archive',
    timeoutMs: 900_000,
    // It reads all of the host, as the journal, rules of the firewall and the state of processes; it writes below /var only.
    properties: [
      ...['ProtectSystem=full', 'ProtectHome=read-only', 'PrivateTmp=yes', 'ProtectClock=yes'],
      ...['NoNewPrivileges=yes', 'RestrictRealtime=yes', 'LockPersonality=yes'],
      'CapabilityBoundingSet=~CAP_SYS_BOOT CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME',
      ...['MemoryMax=768M', 'TasksMax=256', 'Nice=19', 'CPUWeight=10', 'IOSchedulingClass=idle'],
      ...['OOMPolicy=continue', 'TimeoutStopSec=10'],
    ],
  },
  audit: ({ uid }) => `make the support archive ${uid}`,
  command: ({ uid, limitBytes }, { stateDirectory, support }) => ({
    program: process.execPath,
    args: [
      support.program,
      ...(support.socket === '' ? [] : [`--socket=${support.socket}`]),
      `--file=${archiveFile(stateDirectory, uid)}`,
      `--limit-bytes=${limitBytes}`,
      '--output=json',
    ],
  }),
  read({ exitCode, stdout, stderr }): { readonly problems: number } {
    const report = parseJson(stdout.trim()) as { files?: readonly { problem?: string }[] } | undefined
    if (exitCode !== 0 || report?.files === undefined)
      throw new VerbRefused(
        stderr
          .trim()
          .split('\n')
          .at(-1)
          ?.replace(/^edgehostctl: /, '') || `the program ended with ${exitCode ?? 'a signal'}`,
      )
    return { problems: report.files.filter(({ problem }) => problem !== undefined).length }
  },
})

/** Path of an archive; its folder is for root alone. */
export const archiveFile = (stateDirectory: string, uid: string): string =>
  join(stateDirectory, 'support', `${uid}.tar`)
