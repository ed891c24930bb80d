import type { FastifyInstance, FastifyReply } from 'fastify'
import { createHistogram, type Histogram, type HistogramFigures } from '../base/histogram.ts'

/** The requests of one route since the start. */
export interface RequestFigures {
  readonly method: string
  /** Pattern as declared, never the requested path. */
  readonly route: string
  /** Replies by status. */
  readonly statuses: ReadonlyMap<number, number>
  /** Seconds from the start of a request to the end of its reply. */
  readonly durations: HistogramFigures
}

export interface RequestCounts {
  /** The routes that have answered a request. */
  figures(): RequestFigures[]
  /** Counts a refusal of a request that matches no route. */
  countUnrouted(status: number, reply: FastifyReply): void
}

interface Row {
  readonly method: string
  readonly route: string
  readonly statuses: Map<number, number>
  readonly durations: Histogram
}

/** Labels for every path and method without a route, so that no client can create a new row. */
export const unrouted = { method: 'other', route: 'none' } as const

// A read takes a fraction of a millisecond, a refused login three seconds.
const upperBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Counts answered requests. A row for each route is created when the route is added, so a request costs only a few
 * additions. Requests whose client disconnects before the reply are not counted.
 */
export function addRequestCounts(app: FastifyInstance): RequestCounts {
  const rows: Row[] = []
  const open = (method: string, route: string): Row => {
    const row = { method, route, statuses: new Map(), durations: createHistogram(upperBounds) }
    rows.push(row)
    return row
  }
  const other = open(unrouted.method, unrouted.route)

  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      const row = open(method, route.url)
      const count: typeof route.onResponse = (request, reply, done) => {
        if (request.method === method) add(row, reply.statusCode, reply)
        done()
      }
      route.onResponse = [count, ...[route.onResponse ?? []].flat()]
    }
  })

  return {
    figures: () =>
      rows
        .filter(({ statuses }) => statuses.size > 0)
        .map(({ method, route, statuses, durations }) => ({
          method,
          route,
          statuses,
          durations: durations.figures(),
        })),
    countUnrouted: (status, reply) => add(other, status, reply),
  }
}

function add({ statuses, durations }: Row, status: number, { elapsedTime }: FastifyReply): void {
  statuses.set(status, (statuses.get(status) ?? 0) + 1)
  durations.observe(elapsedTime / 1_000)
}
