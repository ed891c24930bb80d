import { KubernetesError } from './client.ts'

// The object itself does not fit its schema; the API server has no status of its own for that.
const misfit = /failed to create typed|failed to (prune|convert)/
const missingAccount = /serviceaccount "[^"]*" not found/
// Of objects of a kind whose definition is being deleted; there is no cause of its own for that.
const endingKind = 'create not allowed while custom resource definition is terminating'

/**
 * Whether the API server may accept the same change a little later: it restarts, a webhook has no endpoints yet, another client has
 * changed the object meanwhile, a namespace is being deleted or does not exist yet, its service account is not made yet, the
 * definition of its kind is being deleted.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof KubernetesError)) return false
  const { status, reason, message, causes } = error
  switch (status) {
    case 0:
      return reason === 'Unreachable' || reason === 'Timeout'
    case 403:
      return (
        causes.includes('NamespaceTerminating') ||
        missingAccount.test(message) ||
        message.includes(endingKind)
      )
    case 500:
      return !misfit.test(message)
    default:
      return [404, 409, 429, 502, 503, 504].includes(status)
  }
}
