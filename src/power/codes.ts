import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of a stop of this host. */
export const powerErrors = defineErrors({
  StopUnderWay: {
    status: 409,
    meaning: 'This host is being rebooted or shut down already.',
    action: 'Wait until it is back; GET /v1/edge-mgmt/edgehosts/current/actions says which stop it is.',
  },
  ResetUnderWay: {
    status: 409,
    meaning: 'This host is being reset already; a reset is not cancelled.',
    action: 'Wait for its end; GET /v1/edge-mgmt/edgehosts/current/actions shows its phase.',
  },
  PlatformLinked: {
    status: 409,
    meaning: 'The platform manages this host, and would order what a reset removes again, as its cluster.',
    action:
      'Delete the cluster on the platform and disconnect the host (edgehostctl platform disconnect), or send it with force=true.',
  },
  StopPlanned: {
    status: 409,
    meaning: 'Another reboot or shutdown of this host is planned; there is one at a time.',
    action: 'DELETE /v1/edge-mgmt/edgehosts/current/actions/UID cancels it; details.uid is its uid.',
  },
})
