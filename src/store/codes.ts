import { defineErrors } from '../errors/define-errors.ts'

/** Errors of queries. */
export const storeErrors = defineErrors({
  TooManyQueries: {
    status: 503,
    meaning: 'Too many list queries that have to read many rows are waiting.',
    action:
      'Wait for the seconds in Retry-After; send queries without filters and orderBy, or one after the other.',
  },
  QueryTooLong: {
    status: 503,
    meaning: 'A list query had to read too many rows and was cancelled.',
    action: 'Narrow the filter, for audits by startTime and endTime, or page in the default order.',
  },
})
