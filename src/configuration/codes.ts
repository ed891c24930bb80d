import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of the configuration of this host. */
export const configurationErrors = defineErrors({
  UserDataAfterCluster: {
    status: 409,
    meaning: 'The host has a cluster; user data is for a host without one.',
    action:
      'Change the parts by themselves: network, configurations, settings of the cluster. Or delete the cluster first.',
  },
  UserDataExists: {
    status: 409,
    meaning: 'The host has user data already.',
    action: 'Replace it with PUT.',
  },
  StagesUnderWay: {
    status: 409,
    meaning: 'The stages of the user data before are still being run.',
    action: 'Wait until GET …/userdata shows that they are done or have failed, and send the new ones then.',
  },
  PlatformNotLinked: {
    status: 500,
    meaning: 'This host could not be linked to the platform.',
    action: 'See journalctl -u edgehostd, and link it on the host: edgehostctl platform connect URL.',
  },
  AuthoritiesUnsupported: {
    status: 409,
    meaning: 'This host has no program that makes certificates known to it.',
    action: 'Install the package ca-certificates, or send the configuration without caCerts.',
  },
})
