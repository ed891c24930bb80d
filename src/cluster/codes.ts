import { documentPath } from '../base/program.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the cluster of this host. */
export const clusterErrors = defineErrors({
  CannotChange: {
    status: 400,
    meaning:
      'A cluster keeps this for its whole life, as its name and the address of its control plane; details.field names it.',
    action: 'Leave the field as GET /v1/edge-mgmt/cluster gives it, or create another cluster.',
  },
  ClusterDeleting: {
    status: 409,
    meaning: 'The cluster is being deleted, so it cannot be changed.',
    action: 'Wait until GET /v1/edge-mgmt/cluster answers 404, then create a new one.',
  },
  ClusterExists: {
    status: 409,
    meaning: 'This host has a cluster, or is deleting one; details.uid names it.',
    action:
      'Delete it (DELETE /v1/edge-mgmt/cluster) and wait until GET answers 404, then create the new one.',
  },
  IdempotencyKeyReused: {
    status: 409,
    meaning: 'The Idempotency-Key belongs to a request of the last 24 hours with another body.',
    action: 'Use a new key for a new cluster; send the same body to repeat a request.',
  },
  NeedsLinkedHosts: {
    status: 400,
    meaning:
      'The request needs further hosts that are linked with this one: another host than this one, a second host or pool, two nodes, or an overlay network.',
    action: 'Leave one pool with one host, which is this one; hosts cannot be linked yet.',
  },
  NoCertificates: {
    status: 409,
    meaning: 'The control plane of the cluster is not set up yet, so there are no certificates to renew.',
    action: 'Wait until the cluster is Running; edgehostctl cluster watch shows its progress.',
  },
  PreflightFailed: {
    status: 400,
    meaning:
      'The cluster cannot be created from the posted configuration, or changed to it, on this host; details.problems lists all findings, errors and warnings.',
    action: `Correct the listed errors, see ${documentPath('preflight-checks.md')}. On a host that is managed there, POST /v1/edge-mgmt/cluster?dryRun=true checks again without a change, and so does every write with ?dryRun=true; on its platform, POST /v1/spectroclusters/edge-native/validate does.`,
  },
  WouldDiscardChanges: {
    status: 409,
    meaning:
      'The revision has an older Kubernetes. Its copy would be restored, and writes to the API of Kubernetes since details.copyTimestamp be lost.',
    action: 'Send discardChanges true to do that, or go back to a revision of the present version.',
  },
})
