import { existsSync } from 'node:fs'
import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import { localAddress } from '../base/address.ts'
import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import { parseRefusal, parseVerdict, type PamVerdict } from './pam-answer.ts'

export interface PamOptions {
  readonly runner: CommandRunner
  /** Runs commands that write outside the unit's sandbox: to /etc/shadow. */
  readonly privileged: CommandRunner
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
export function createPam({ runner, privileged, program, service, timeoutMs }: PamOptions): Pam {
  const argumentsFor = ({ userName, address }: Credentials, ...operations: string[]) => [
    // The local socket is treated like the console.
    ...(address === localAddress ? [] : ['-I', `rhost=${address}`]),
    service,
    userName,
    ...operations,
  ]

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
        .run(program, argumentsFor(credentials, ...operations), {
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
      const input = `${credentials.password}\n${newPassword}\n${newPassword}\n`
      const operation = 'chauthtok(PAM_CHANGE_EXPIRED_AUTHTOK)'
      const result = await privileged
        .run(program, argumentsFor(credentials, operation), { timeoutMs, input })
        .catch((error: unknown) => {
          throw error instanceof CommandFailed
            ? new AppError(
                authErrors.PasswordChangeUnavailable,
                'the unit that changes passwords could not be run',
                {
                  cause: error,
                },
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
