import { documentPath } from '../base/program.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the platform. */
export const platformErrors = defineErrors({
  SignInRefused: {
    status: 401,
    meaning:
      'The sign-in was refused. A wrong password, an unknown user and a user without a password all get this same answer.',
    action: 'Try again, or ask an administrator for a new link: edgeplatformctl user activation USER.',
  },
  LinkRefused: {
    status: 400,
    meaning: 'The link to set a password is unknown, used, or older than a day.',
    action: 'Ask an administrator for a new link: edgeplatformctl user activation USER.',
  },
  UserExists: {
    status: 409,
    meaning: 'There is a user with this e-mail address.',
    action: 'Use that user, or another address.',
  },
  ProjectExists: {
    status: 409,
    meaning: 'There is a project with this name; upper and lower case are the same.',
    action: 'Use that project, or another name.',
  },
  ProjectNotFound: {
    status: 404,
    meaning: 'There is no project with this uid in which the caller has a role.',
    action: 'See edgeplatformctl project list, or ask an administrator for a role.',
  },
  KeyExists: {
    status: 409,
    meaning: 'There is an API key with this name; upper and lower case are the same.',
    action: 'Use another name.',
  },
  TokenExists: {
    status: 409,
    meaning: 'There is a registration token with this name; upper and lower case are the same.',
    action: 'Use another name.',
  },
  RegistrationTokenRefused: {
    status: 401,
    meaning: 'The registration token is unknown, expired, switched off or used up.',
    action: 'Make another one with edgeplatformctl token create.',
  },
  HostAlreadyRegistered: {
    status: 409,
    meaning: 'A host with this id is registered with another key.',
    action:
      'Delete the record that is in the way, edgeplatformctl host delete UID, and connect the host again.',
  },
  HostNameExists: {
    status: 409,
    meaning: 'There is a host with this name in the project.',
    action: 'Register with another name; hosts then take their id, which is theirs alone.',
  },
  LoginChallenge: {
    status: 401,
    meaning:
      'The answer to the first half of the login of a host: the nonce in details.nonce has to be signed.',
    action: 'Hosts do this by themselves.',
  },
  LoginRefused: {
    status: 401,
    meaning: 'The platform knows no such host with this key.',
    action: 'Connect the host again with a new registration token.',
  },
  HostRemoved: {
    status: 401,
    meaning: 'The host was removed from the platform.',
    action: 'Connect the host again with a new registration token, or disconnect it.',
  },
  HostExistsTwice: {
    status: 401,
    meaning: 'Two hosts log in with one key: a disk was copied, or put back from a backup.',
    action: 'Switch one of them off, then let the other one in with edgeplatformctl host accept HOST.',
  },
  PackExists: {
    status: 409,
    meaning: 'There is a pack with this name and version in the scope.',
    action: 'Use that pack, delete it, or give the new one another version.',
  },
  PackInUse: {
    status: 409,
    meaning: 'Cluster profiles use the pack, or clusters were made of it.',
    action: 'The message names them. Delete the profiles first; delete the clusters, or change them.',
  },
  ProfileExists: {
    status: 409,
    meaning: 'There is a cluster profile with this name and version in the scope.',
    action: 'Use that profile, delete it, or give the new one another version.',
  },
  ProfilePublished: {
    status: 409,
    meaning: 'The version of the profile is published, and a published version never changes.',
    action:
      'Export it with edgeplatformctl profile export, change the version, and import it as another one.',
  },
  ProfileInUse: {
    status: 409,
    meaning: 'Clusters use the profile.',
    action: 'Delete them or give them another profile first; the message names them.',
  },
  SecretReplaced: {
    status: 409,
    meaning:
      'The secret of the state folder was replaced, so that the sensitive values of the profile, cluster or cloud account cannot be read any more.',
    action:
      'Import the profile again, give the values of the cluster again, make the cloud account again, or restore a backup that has the secret.',
  },
  ClusterInvalid: {
    status: 400,
    meaning:
      'The cluster cannot be made so on this host; details.problems lists everything that was found, errors and warnings.',
    action: 'Correct the listed errors; edgeplatformctl cluster validate checks again.',
  },
  ClusterExists: {
    status: 409,
    meaning: 'There is a cluster with this name in the scope.',
    action: 'Use another name, or delete that cluster.',
  },
  ClusterChanged: {
    status: 409,
    meaning: 'The cluster, or what it is made of, was changed while the request was examined.',
    action: 'Send the request again.',
  },
  ClusterDeleting: {
    status: 409,
    meaning: 'The cluster is being deleted, so it cannot be changed.',
    action:
      'Wait until its host has deleted it. Where it has not started, an administrator takes the deletion back with edgeplatformctl cluster apply CLUSTER --cancel-deletion.',
  },
  HostInUse: {
    status: 409,
    meaning: 'The host has a cluster.',
    action:
      'Delete the cluster first; the message names it. For a host that is lost or in wrong hands: edgeplatformctl host delete HOST --force.',
  },
  HostNotSilent: {
    status: 409,
    meaning: 'The host of the cluster was seen within the last hour, so it can delete the cluster itself.',
    action:
      'Delete without forceDelete, or wait until the host has been silent for an hour. A host that is in wrong hands is removed at once, with its cluster, by edgeplatformctl host delete HOST --force.',
  },
  CloudNotConfigured: {
    status: 400,
    meaning: 'The configuration of the platform names no cloud.',
    action: `Set clouds.vendor.authUrl and restart the platform; see ${documentPath('platform.md')}, "Clouds".`,
  },
  CloudCredentialsRefused: {
    status: 400,
    meaning:
      'The cloud refuses the credentials: the id is unknown, the secret is wrong, they have expired or were deleted, or their role may not do this.',
    action: 'Make another application credential in the cloud, and a cloud account with it.',
  },
  CloudUnavailable: {
    status: 503,
    meaning: 'The cloud does not answer in time, or its answer cannot be used; the message says which.',
    action: `Try again; see ${documentPath('platform.md')}, "Clouds".`,
  },
  CloudAccountExists: {
    status: 409,
    meaning: 'There is a cloud account with this name in the scope.',
    action: 'Use that account, or another name.',
  },
  CloudAccountInUse: {
    status: 409,
    meaning: 'Cloud configurations use the cloud account.',
    action: 'Delete them first; the message names them.',
  },
  CloudConfigExists: {
    status: 409,
    meaning: 'There is a cloud configuration with this name in the scope.',
    action: 'Use that one, delete it, or use another name.',
  },
  ProjectInUse: {
    status: 409,
    meaning:
      'The project still has clusters, hosts, registration tokens, packs, cluster profiles, cloud accounts or cloud configurations.',
    action: 'Delete them first; the message names them.',
  },
  LimitReached: {
    status: 409,
    meaning:
      'A project, or the tenant, has as many of a kind as it may have, or its packs or cluster profiles take as much space; the message names the number.',
    action: `Delete what is not needed; ${documentPath('platform.md')}, "Limits", lists the numbers.`,
  },
  LastAdministrator: {
    status: 409,
    meaning: 'The tenant would be left without an administrator.',
    action: 'Make another user an administrator first.',
  },
})
