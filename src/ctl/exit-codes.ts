import { program } from '../base/program.ts'

/** Exit codes of the command line, for scripts: help, manual page and documentation are made from this table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'Success.' },
  failed: {
    code: 1,
    meaning: `The command failed, or the ${program.noun} refused it; the message says why.`,
  },
  usage: { code: 2, meaning: 'The command line is wrong.' },
  unreachable: { code: 3, meaning: `The daemon is not running, or the ${program.noun} does not answer.` },
  notLoggedIn: { code: 4, meaning: 'You are not logged in, or may not open the socket.' },
  untrusted: {
    code: 5,
    meaning: `The public key of the ${program.noun} is not known yet, or has changed.`,
  },
  hostSilent: {
    code: 6,
    meaning: 'The host of the cluster does not answer, so the state of the cluster is old.',
  },
  takenBack: {
    code: 7,
    meaning: 'A change of the network was taken back; the message says why.',
  },
  badConfiguration: { code: 78, meaning: 'The configuration has problems.' },
  interrupted: { code: 130, meaning: 'Ctrl-C.' },
} as const

export type ExitName = keyof typeof exitCodes

/** An error for the user; only its message is printed. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitName: ExitName

  constructor(exitName: ExitName, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitName = exitName
  }
}
