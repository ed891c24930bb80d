import { existsSync } from 'node:fs'
import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import { localAddress } from '../base/address.ts'
import { CommandFailed, type CommandResult, type CommandRunner } from '../system/runner.ts'

/** The answer of PAM to a user name and password. */
type PamVerdict =
  | { readonly kind: 'accepted' }
  /** The password is right but must be changed. */
  | { readonly kind: 'password-expired' }
  /** `reason` is for the journal only. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The stack itself is broken; `reason` is the cause. */
  | { readonly kind: 'unusable'; readonly reason: string }

// Texts of pam_strerror(3) in the C locale. Which one a wrong password gives depends on the stack of the site.
const expired = ['Authentication token is no longer valid; new one required', 'Authentication token expired']
const broken = [
  'Module is unknown',
  'Failed to load module',
  'Symbol not found',
  'Error in service module',
  'System error',
  'Memory buffer error',
  'Critical error - immediate abort',
  'Conversation error',
]

/**
 * Parses pamtester's answer to `authenticate acct_mgmt`: the exit code is only yes or no, the details are in the last
 * line of its output.
 */
export function parseVerdict(exitCode: number | undefined, stderr: string): PamVerdict {
  if (exitCode === 0) return { kind: 'accepted' }
  const reason = resultOf(stderr)
  if (reason === undefined)
    return { kind: 'unusable', reason: `pamtester ended with ${exitCode ?? 'a signal'} without a message` }
  if (expired.includes(reason)) return { kind: 'password-expired' }
  if (broken.includes(reason)) return { kind: 'unusable', reason }
  return { kind: 'refused', reason: [...wordsOf(stderr), reason].join(' ') }
}

/** Why PAM did not change a password, in the text of its modules. */
export function parseRefusal(stderr: string): string {
  const words = wordsOf(stderr).filter((line) => line !== 'Password change has been aborted.')
  return words.join(' ') || resultOf(stderr) || 'the password was not changed'
}

const resultOf = (stderr: string) => /pamtester: (.+)\s*$/.exec(stderr.trimEnd())?.[1]

// Prompts are written without a newline, so the next text follows on the same line.
const prompt = /^((Current|New|Retype new|\(current\) UNIX|Enter new UNIX|Retype new UNIX) )?[Pp]assword: ?/

function wordsOf(stderr: string): string[] {
  return stderr
    .split('\n')
    .map((line) => {
      let rest = line
      while (prompt.test(rest)) rest = rest.replace(prompt, '')
      return rest.trim()
    })
    .filter((line) => line !== '' && !line.startsWith('pamtester:'))
}

export interface PamOptions {
  readonly runner: CommandRunner
  /** Changes a password, outside of the sandbox of the daemon: in /etc/shadow. */
  readonly change: (credentials: Credentials & { readonly newPassword: string }) => Promise<CommandResult>
  /** Absolute path of pamtester. */
  readonly program: string
  /** Name of the file in /etc/pam.d. */
  readonly service: string
  readonly timeoutMs: number
}

export interface Credentials {
  readonly userName: string
  readonly password: string
  /** Address of the client, for modules that check the origin of a login. */
  readonly address: string
}

// Checking a password is expensive by design, and any client may request it: requests of logged-in users have priority.
const niceness = 5

/** Arguments of pamtester. */
export const pamtesterArguments = (
  service: string,
  { userName, address }: Pick<Credentials, 'userName' | 'address'>,
  ...operations: readonly string[]
): readonly string[] => [
  // The local socket is treated like the console.
  ...(address === localAddress ? [] : ['-I', `rhost=${address}`]),
  service,
  userName,
  ...operations,
]

/** The host's PAM stack. */
export interface Pam {
  /**
   * Checks a password and the account behind it.
   * @param onStarted called with the process id of the child
   * @throws AppError PamUnavailable
   */
  verify(
    credentials: Credentials,
    onStarted?: (pid: number) => void,
  ): Promise<PamVerdict & { kind: 'accepted' | 'password-expired' | 'refused' }>
  /**
   * Changes a password under the site's policy.
   * @returns undefined when it was changed, otherwise the text of PAM
   * @throws AppError PasswordChangeUnavailable, PamUnavailable
   */
  changePassword(credentials: Credentials & { readonly newPassword: string }): Promise<string | undefined>
}

/**
 * Uses PAM through pamtester. Only address and user name vary among its arguments; passwords are passed on standard
 * input.
 *
 * Measurements show that each part is needed: without `rhost` pam_access treats the network as the local console;
 * without PAM_DISALLOW_NULL_AUTHTOK an account without a password can log in; without acct_mgmt expired accounts can
 * log in; without PAM_CHANGE_EXPIRED_AUTHTOK the modules, called by root, skip the old password and the policy.
 */
export function createPam({ runner, change, program, service, timeoutMs }: PamOptions): Pam {
  // PAM does not report a missing service file: it falls back to `other`, which authenticates on Debian.
  function requireService(): void {
    const files = [`/etc/pam.d/${service}`, `/usr/lib/pam.d/${service}`]
    if (!files.some((file) => existsSync(file))) throw unavailable(missingService(service))
  }

  return {
    async verify(credentials, onStarted) {
      requireService()
      const operations = ['authenticate(PAM_DISALLOW_NULL_AUTHTOK)', 'acct_mgmt']
      const input = `${credentials.password}\n`
      const result = await runner
        .run(program, pamtesterArguments(service, credentials, ...operations), {
          timeoutMs,
          input,
          niceness,
          onlyErrors: true,
          ...(onStarted ? { onStarted } : {}),
        })
        .catch((error: unknown) => {
          throw error instanceof CommandFailed ? unavailable(adviseOnFailure(error)) : error
        })
      const verdict = parseVerdict(result.exitCode, result.stderr)
      if (verdict.kind === 'unusable') throw unavailable(`${verdict.reason}: ${seeModules}`)
      return verdict
    },

    async changePassword({ newPassword, ...credentials }) {
      requireService()
      const result = await change({ ...credentials, newPassword }).catch((error: unknown) => {
        throw error instanceof CommandFailed
          ? new AppError(
              authErrors.PasswordChangeUnavailable,
              'the unit that changes passwords could not be run',
              { cause: error },
            )
          : error
      })
      if (result.exitCode === 0) return undefined
      const verdict = parseVerdict(result.exitCode, result.stderr)
      if (verdict.kind === 'unusable') {
        throw new AppError(
          authErrors.PasswordChangeUnavailable,
          'the unit that changes passwords could not be run',
          {
            cause: new Error(`${verdict.reason}: ${result.stderr.trim()}`),
          },
        )
      }
      return parseRefusal(result.stderr)
    },
  }
}

const seeModules = 'find the module with: journalctl --since=-10min -t pamtester'

const missingService = (service: string) =>
  `/etc/pam.d/${service} is missing: write it with printf '%s\\n' '@include common-auth' ` +
  `'account required pam_access.so' 'account required pam_nologin.so' '@include common-account' '@include common-password' > /etc/pam.d/${service}`

function adviseOnFailure({ message, reason, program }: CommandFailed): string {
  if (reason === 'not-started')
    return `${message}: see ls -l ${program}, install the package again or set auth.pam.program`
  return `${message}: a module of the stack takes too long; ${seeModules}, or raise auth.pam.timeoutMs`
}

const unavailable = (reason: string) =>
  new AppError(authErrors.PamUnavailable, "the host's PAM stack gave no answer", {
    cause: new Error(reason),
  })
