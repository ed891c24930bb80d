import { Type, type Static } from 'typebox'
import { Content, Definitions } from './content-schema.ts'
import { absolutePath, path, positive, strict } from './schema-parts.ts'

/** Where the state lies unless the configuration says otherwise. */
export const defaultStateDirectory = '/var/lib/edgehostd'

const identitySources = [
  'product-uuid',
  'product-serial',
  'board-serial',
  'chassis-serial',
  'device-tree-serial',
  'machine-id',
]
const limitedResources = [
  'cluster',
  'clusters',
  'content',
  'edgehosts',
  'events',
  'network',
  'settings',
  'users',
  'other',
]
const rate = (requestsPerSecond: number, burst: number, of: string) => ({
  requestsPerSecond: positive(requestsPerSecond, 100_000, `Requests a second from one address ${of}.`),
  burst: positive(burst, 3_600, 'Seconds of that rate that may come at once after a pause.'),
})

const Host = Type.Object(
  {
    id: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
        accepts: '1 to 128 letters, digits, dots, dashes and underscores, the first a letter or digit',
        examples: ['press-3'],
        description: 'Identity of this host, taken whole; without it identitySources are asked.',
      }),
    ),
    identitySources: Type.Array(
      Type.String({
        pattern: `^(${identitySources.join('|')}|/[^\\0]*[^/\\0])$`,
        accepts: `${identitySources.join(', ')} or the absolute path of a file`,
      }),
      {
        default: ['product-uuid', 'machine-id'],
        description:
          'Where the identity comes from at the first start, the strongest first; placeholders of vendors are passed over. Of a file the first line counts. Without any of them it is random.',
      },
    ),
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 253,
        examples: ['Press 3, hall B'],
        description: 'Name of this host; without it the id.',
      }),
    ),
    mode: Type.Union([Type.Literal('airgap'), Type.Literal('connected')], {
      default: 'airgap',
      description: 'airgap: clusters are managed here. connected: the platform manages them.',
    }),
    console: Type.Object(
      {
        issueFile: Type.String({
          pattern: '^(/[^\\0]+)?$',
          accepts: 'an absolute path, or nothing for no such file',
          default: '/run/issue.d/edgehostd.issue',
          description: 'File by which the console shows address and fingerprint above its login prompt.',
        }),
      },
      strict,
    ),
  },
  strict,
)

const Api = Type.Object(
  {
    address: Type.String({
      format: 'ip',
      accepts: 'an IPv4 or IPv6 address',
      default: '::',
      description: 'Address to listen on; :: is every address, IPv4 included. Must match edgehostd.socket.',
    }),
    port: positive(5080, 65535, 'Port to listen on. Must match edgehostd.socket.'),
    socket: Type.Object(
      {
        path: Type.String({
          // sockaddr_un has 108 bytes, unix(7).
          pattern: '^(/[\\x01-\\x7f]{1,106})?$',
          accepts: 'an absolute path of at most 107 characters, or nothing for no socket',
          default: '/run/edgehostd/edgehostd.sock',
          description: 'Unix socket on which root of this host has the same API without a login.',
        }),
      },
      strict,
    ),
    tls: Type.Object(
      {
        certificateFile: Type.Optional(
          path(
            '/etc/edgehostd/tls/server.crt',
            "An administrator's own certificate chain, PEM. Needs keyFile.",
          ),
        ),
        keyFile: Type.Optional(
          path('/etc/edgehostd/tls/server.key', 'Its private key, PEM. Needs certificateFile.'),
        ),
      },
      strict,
    ),
    timeouts: Type.Object(
      {
        handshakeMs: positive(5_000, 600_000, 'For the TLS handshake.'),
        headersMs: positive(5_000, 600_000, 'For the header fields of a request.'),
        idleMs: positive(30_000, 3_600_000, 'For a connection between two requests.'),
        stalledMs: positive(120_000, 3_600_000, 'For a connection on which nothing moves at all.'),
      },
      strict,
    ),
    body: Type.Object(
      {
        limitBytes: positive(1_048_576, 1_073_741_824, 'Largest JSON body.'),
        minimumBytesPerSecond: positive(1_024, 1_073_741_824, 'A body that arrives more slowly is closed.'),
        windowSeconds: positive(10, 3_600, 'The rate is measured over this many seconds.'),
      },
      strict,
    ),
    connections: Type.Object(
      {
        maximum: positive(1_000, 100_000, 'Open connections in all.'),
        maximumPerAddress: positive(64, 100_000, 'Open connections from one address (IPv6: one /64).'),
      },
      strict,
    ),
    rateLimits: Type.Object(
      {
        enabled: Type.Boolean({ default: true, description: 'Whether requests are limited at all.' }),
        ...rate(10, 5, '(IPv6: one /64) to one resource, the first name after /v1/ or /v1/edge-mgmt/'),
        login: Type.Object(rate(2, 5, 'to login and password reset together'), strict),
        resources: Type.Array(
          Type.String({
            pattern: `^(${limitedResources.join('|')})=[1-9][0-9]{0,4}/[1-9][0-9]{0,2}$`,
            accepts: `<resource>=<requests a second>/<burst>, the resource one of ${limitedResources.join(', ')}`,
          }),
          { default: [], description: 'Resources with a rate of their own, for example clusters=50/5.' },
        ),
        trackedKeys: positive(65_536, 10_000_000, 'Counters kept in memory; the fullest give way.'),
      },
      strict,
    ),
  },
  strict,
)

const Auth = Type.Object(
  {
    adminGroups: Type.Array(Type.String({ minLength: 1 }), {
      default: ['sudo', 'wheel', 'edgehostd-admin'],
      description: 'Members of these groups, and uid 0, are administrators; everyone else may read.',
    }),
    allowAnyShell: Type.Boolean({
      default: false,
      description: 'Let in accounts whose shell is not in /etc/shells.',
    }),
    refusalDelayMs: Type.Integer({
      minimum: 0,
      maximum: 60_000,
      default: 3_000,
      description: 'Every refused login is answered this long after it arrived.',
    }),
    pam: Type.Object(
      {
        service: Type.String({
          pattern: '^[a-z][a-z0-9-]{0,62}$',
          accepts: '1 to 63 lower-case letters, digits and dashes, the first a letter',
          default: 'edgehostd',
          description: 'Name of the file in /etc/pam.d.',
        }),
        program: Type.String({
          ...absolutePath,
          default: '/usr/lib/edgehostd/pamtester',
          description: 'The pamtester to run.',
        }),
        timeoutMs: positive(20_000, 600_000, 'A PAM child that takes longer is killed.'),
        maximumChildren: positive(32, 1_000, 'PAM children at one time, sleeping ones included.'),
        queueLength: Type.Integer({
          minimum: 0,
          maximum: 10_000,
          default: 16,
          description: 'Logins that wait for a free child; more are refused.',
        }),
      },
      strict,
    ),
    guard: Type.Object(
      {
        delayAfterFailures: positive(
          3,
          1_000_000,
          'Failures of one user from one address before each try has to wait.',
        ),
        firstDelaySeconds: positive(1, 3_600, 'The first wait; it doubles with each further failure.'),
        lockAfterFailures: positive(
          5,
          1_000_000,
          'Failures of one user from one address before the pair is locked.',
        ),
        lockMinutes: Type.Number({
          exclusiveMinimum: 0,
          maximum: 10_080,
          default: 15,
          description: 'How long a lock lasts.',
        }),
        addressLockAfterFailures: positive(
          20,
          1_000_000,
          'Failures from one address (IPv6: one /64) before it is locked.',
        ),
        userFailuresPerHour: positive(
          100,
          1_000_000,
          'Failures of one user in an hour, over all addresses, above which only loopback and addresses of earlier successes may try.',
        ),
        trackedKeys: positive(10_000, 1_000_000, 'Counters kept in memory; the oldest give way.'),
      },
      strict,
    ),
    tokens: Type.Object(
      {
        accessMinutes: positive(15, 1_440, 'Life of an access token.'),
        renewalHours: positive(2, 168, 'A renewal extends the session by this.'),
        extendedRenewalHours: positive(24, 168, 'The same with extendedSession=true.'),
        maximumDays: positive(7, 365, 'A session never lives longer.'),
        replaySeconds: positive(30, 600, 'The same old refresh token gets the same reply for this long.'),
      },
      strict,
    ),
  },
  strict,
)

const Audit = Type.Object(
  {
    retentionDays: positive(1_095, 36_500, 'Records of the audit trail older than this are removed.'),
    limitBytes: positive(
      268_435_456,
      1_099_511_627_776,
      'Disk that the audit trail may take; the oldest records are removed beyond.',
    ),
  },
  strict,
)

const Metrics = Type.Object(
  {
    enabled: Type.Boolean({ default: true, description: 'Whether GET /metrics is answered.' }),
    tokenFile: Type.Optional(
      path(
        '/etc/edgehostd/metrics-token',
        'A file, mode 0600, that holds a token for scrapers elsewhere; it opens the metrics alone. The host itself needs none.',
      ),
    ),
  },
  strict,
)

const Log = Type.Object(
  {
    level: Type.Union(
      [
        Type.Literal('fatal'),
        Type.Literal('error'),
        Type.Literal('warn'),
        Type.Literal('info'),
        Type.Literal('debug'),
        Type.Literal('trace'),
      ],
      { default: 'info', description: 'Lowest level that is written.' },
    ),
  },
  strict,
)

const State = Type.Object(
  {
    directory: Type.String({
      ...absolutePath,
      default: defaultStateDirectory,
      description: 'Database, secret, certificate and definitions.',
    }),
  },
  strict,
)

/** The whole configuration, every section present once defaults are filled in. */
export const ConfigSchema = Type.Object(
  {
    host: Host,
    api: Api,
    auth: Auth,
    content: Content,
    definitions: Definitions,
    audit: Audit,
    metrics: Metrics,
    log: Log,
    state: State,
  },
  strict,
)

/** Validated and complete; frozen by `loadConfig`. */
export type Config = Static<typeof ConfigSchema>
