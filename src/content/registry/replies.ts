import type { Replies } from '../../api/replies.ts'

// Codes of the daemon where the specification has another word for the same.
const words: Readonly<Record<string, string>> = {
  MethodNotAllowed: 'UNSUPPORTED',
  Unauthenticated: 'UNAUTHORIZED',
  ContentUnavailable: 'UNAVAILABLE',
  NotReady: 'UNAVAILABLE',
  Internal: 'UNKNOWN',
}

/** `BlobUnknown` as `BLOB_UNKNOWN`. */
const wordOf = (code: string) => words[code] ?? code.replace(/(?<=.)[A-Z]/g, '_$&').toUpperCase()

/**
 * How the registry replies.
 * Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes
 */
export const registryReplies: Replies = {
  headers: { 'docker-distribution-api-version': 'registry/2.0', 'x-content-type-options': 'nosniff' },
  errorType: 'application/json',
  errorBody: ({ code, message, details }, ref) => ({
    errors: [{ code: wordOf(code), message, detail: { ...details, ref } }],
  }),
}
