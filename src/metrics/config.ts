import { Type } from 'typebox'
import { path, strict } from '../config/schema-parts.ts'

/** Whether and for whom there are metrics. */
export const Metrics = Type.Object(
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
