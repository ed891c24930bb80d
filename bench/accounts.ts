import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, rmSync } from 'node:fs'

export interface Account {
  readonly userName: string
  readonly password: string
}

/** Real accounts and a PAM service of this run's own. */
export interface Accounts {
  /** Name of the file in /etc/pam.d. */
  readonly service: string
  /** May log in. */
  readonly good: Account
  /** Its password is right, but `passwd -l` has locked it. */
  readonly locked: Account
  remove(): void
}

/**
 * Makes the accounts and the PAM service; the caller removes them, also after a failure. Needs root.
 * @param serviceFile the PAM file of the package; it includes the rules of this machine, such as the failure delay
 */
export function makeAccounts(serviceFile: string): Accounts {
  const service = `edgehostd-bench-${process.pid}`
  const made: string[] = []
  const remove = () => {
    // --force: the account is removed even when a process still runs in it.
    for (const name of made.splice(0)) run('userdel', ['--force', name])
    rmSync(`/etc/pam.d/${service}`, { force: true })
  }
  const make = (kind: string): Account => {
    const account = {
      userName: `ehbench${process.pid}${kind}`,
      password: randomBytes(12).toString('base64url'),
    }
    run('useradd', ['--no-create-home', '--shell', '/bin/sh', account.userName])
    made.push(account.userName)
    run('chpasswd', [], `${account.userName}:${account.password}\n`)
    return account
  }
  try {
    copyFileSync(serviceFile, `/etc/pam.d/${service}`)
    const good = make('a')
    const locked = make('b')
    run('passwd', ['--lock', '--quiet', locked.userName])
    return { service, good, locked, remove }
  } catch (error) {
    remove()
    throw error
  }
}

function run(program: string, args: readonly string[], input = ''): void {
  execFileSync(program, args, { input, stdio: ['pipe', 'pipe', 'pipe'] })
}
