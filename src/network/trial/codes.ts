import { defineErrors } from '../../errors/define-errors.ts'

/** Errors of changes of the host's network. */
export const trialErrors = defineErrors({
  NetworkChangeOpen: {
    status: 429,
    meaning: 'Another change of the network of this host is being tried; details.uid names it.',
    action: 'Confirm it or take it back, or wait for its deadline: edgehostctl network changes.',
  },
  NetworkChangeDecided: {
    status: 409,
    meaning: 'The change of the network is confirmed already, or taken back.',
    action: 'See edgehostctl network changes; make the change again where it is wanted.',
  },
  NetworkChangeNotApplied: {
    status: 409,
    meaning: 'The change of the network is still being applied, so it cannot be confirmed yet.',
    action: 'Wait until its state is trial, then confirm it on a new connection.',
  },
  NetworkConfirmUnproven: {
    status: 409,
    meaning:
      'The request to confirm does not show that this host can be reached as its network is now: it came on a connection that is older than the change, or to an address that the change has not left.',
    action:
      'Confirm on a new TLS connection to an address that the host has now, or on the host as root: edgehostctl network confirm UID.',
  },
  NetworkPlatformUnheard: {
    status: 409,
    meaning:
      'The change is of a gateway or of name servers, the platform answered before it, and has not since: the change may have cut this host off from it.',
    action:
      'Wait some seconds and confirm again: the host connects to its platform anew after the apply, and the change is taken back where that fails. Or on the host as root: edgehostctl network confirm UID.',
  },
  NetworkChangeFailed: {
    status: 503,
    meaning: 'The change of the network could not be begun, or not be confirmed; the message says why.',
    action: 'See journalctl -t edgehostd on the host; nothing is changed where the message says so.',
  },
})
