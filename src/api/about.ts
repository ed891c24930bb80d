import { generalErrors } from '../errors/codes.ts'
import type { Declaration } from '../root/room.ts'
import { apiErrors, hostApiErrors } from './codes.ts'
import { apiSection, apiSectionByTable } from './config.ts'
import type { RateRow } from './rate/rows.ts'

const common = {
  errors: { ...generalErrors, ...apiErrors },
  families: {
    edgehostd_http_requests_total: {
      type: 'counter',
      help: 'Answered requests by route as declared; route "none" is every request that matches no route.',
      labels: ['method', 'route', 'status'],
    },
    edgehostd_http_request_duration_seconds: {
      type: 'histogram',
      help: 'From the start of a request to the end of its reply.',
      labels: ['method', 'route'],
    },
    edgehostd_http_connections: { type: 'gauge', help: 'Open connections.' },
    edgehostd_rate_limit_refusals_total: {
      type: 'counter',
      help: 'Requests refused with 429 because their client or user requested this resource too often.',
      labels: ['resource'],
    },
  },
} as const satisfies Declaration

/** The HTTPS port and root's socket. */
export const about = {
  ...common,
  errors: { ...common.errors, ...hostApiErrors },
  config: { api: ({ limited }: { readonly limited: readonly string[] }) => apiSection(limited) },
  // Resources of the published API. A configuration may name them before a room serves them.
  limited: ['cluster', 'clusters', 'events', 'network'],
} as const satisfies Declaration

/** The same for a program with a table of rates by path. */
export const aboutByTable = (rows: readonly RateRow[]) =>
  ({
    ...common,
    config: { api: apiSectionByTable(rows.map(({ path }) => path)) },
  }) as const satisfies Declaration
