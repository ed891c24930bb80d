import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of the name and the time servers of this host. */
export const setupErrors = defineErrors({
  HostInCluster: {
    status: 409,
    meaning:
      'This host has a cluster: its node keeps the name that it was made with, and the time servers are a setting of the cluster.',
    action:
      'Set the time servers with edgehostctl cluster settings --ntp; for another name delete the cluster first.',
  },
  HostNotSet: {
    status: 503,
    meaning: 'The name or the time servers of this host could not be set; the message says why.',
    action: 'Do what the message says, and send it again: what is done already is done once more.',
  },
})
