import { generalErrors } from '../errors/codes.ts'
import type { Declaration } from '../room.ts'
import { apiErrors } from './codes.ts'
import { apiSection } from './config.ts'

/** The HTTPS port and root's socket. */
export const about = {
  errors: { ...generalErrors, ...apiErrors },
  config: { api: ({ limited }: { readonly limited: readonly string[] }) => apiSection(limited) },
  families: {
    edgehostd_http_requests_total: {
      type: 'counter',
      help: 'Answered requests by route as declared; route "none" is everything that is not there.',
      labels: ['method', 'route', 'status'],
    },
    edgehostd_http_request_duration_seconds: {
      type: 'histogram',
      help: 'From the begin of a request to the end of its reply.',
      labels: ['method', 'route'],
    },
    edgehostd_http_connections: { type: 'gauge', help: 'Open connections.' },
    edgehostd_rate_limit_refusals_total: {
      type: 'counter',
      help: 'Requests refused with 429 because their address asked for this resource too often.',
      labels: ['resource'],
    },
  },
  // Of the published API; the rooms that answer them may come later than a configuration that names them.
  limited: ['cluster', 'clusters', 'events', 'network'],
} as const satisfies Declaration
