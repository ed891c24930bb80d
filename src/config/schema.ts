import { Type, type Static } from 'typebox'
import { Api } from './api-schema.ts'
import { Auth } from './auth-schema.ts'
import { Content, Definitions } from './content-schema.ts'
import { Host } from './host-schema.ts'
import { absolutePath, path, positive, strict } from './schema-parts.ts'

/** Where the state lies unless the configuration says otherwise. */
export const defaultStateDirectory = '/var/lib/edgehostd'

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
