import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of queries. */
export const storeErrors = defineErrors({
  TooManyQueries: {
    status: 503,
    meaning: 'More list queries that have to look at many rows are waiting than the host has room for.',
    action: 'Wait for the seconds in Retry-After; ask without filters and orderBy, or one after the other.',
  },
  QueryTooLong: {
    status: 503,
    meaning: 'A list query had to look at so many rows that it was given up.',
    action: 'Narrow the filter, for audits by startTime and endTime, or page in the default order.',
  },
})
