import { program } from '../base/program.ts'
import { Type } from 'typebox'
import { path, strict } from '../config/schema-parts.ts'

/** Whether there are metrics, and who may read them. */
export const Metrics = Type.Object(
  {
    enabled: Type.Boolean({ default: true, description: 'Whether GET /metrics is answered.' }),
    tokenFile: Type.Optional(
      path(
        `/etc/${program.folder}/metrics-token`,
        'A file, mode 0600, with a token for scrapers on other hosts; the token is accepted for the metrics only. Scrapers on this host need no token.',
      ),
    ),
  },
  strict,
)
