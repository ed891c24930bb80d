// SSH keys that an account has set itself. They are in a file of its home, which the daemon cannot read: the database has those that were set.

import type { Static } from 'typebox'
import { AppError } from '../errors/app-error.ts'
import { readEntries, refusedField } from '../errors/refused-field.ts'
import { fingerprintOf, problemOfKey } from '../host/public-key.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Verbs } from '../verbs/call.ts'
import { VerbRefused } from '../verbs/verb.ts'
import { authErrors } from './codes.ts'
import type { Login, LoginRequest } from './login.ts'
import type { UserSpec } from './schemas.ts'
import type { Sessions } from './sessions.ts'
import { setSshKeys } from './verbs.ts'

/** A change of the own account that was done. */
export interface KeysChange {
  readonly userName: string
  readonly fingerprints: readonly string[]
}

interface AccountKeysOptions {
  readonly database: Database
  readonly verbs: Verbs
  readonly login: Pick<Login, 'check'>
  readonly sessions: Pick<Sessions, 'find'>
  readonly clock: Clock
  readonly log: Logger
  readonly onChange: (change: KeysChange) => void
}

/** The caller: an account, by its session. */
interface Owner {
  readonly userName: string
  readonly sessionUid: string
}

export interface AccountKeys {
  /** Keys that the account has set. */
  of(userName: string): readonly string[]
  /**
   * Changes the caller's own account.
   * @param request facts for the check of a password
   * @returns what differs; undefined where the body changes nothing
   * @throws AppError BadRequest, LoginTooOld, OldPasswordWrong, SshKeysRefused and the errors of a login
   */
  change(
    owner: Owner,
    body: Static<typeof UserSpec>,
    request: Omit<LoginRequest, 'userName' | 'password'>,
  ): Promise<KeysChange | undefined>
}

const mostKeys = 64
const recentMs = 300_000

export function createAccountKeys(options: AccountKeysOptions): AccountKeys {
  const { database, verbs, login, sessions, clock, log, onChange } = options
  const find = database.sql.prepare('SELECT keys FROM account_ssh_keys WHERE name = ?')
  const put = database.sql.prepare('INSERT OR REPLACE INTO account_ssh_keys (name, keys) VALUES (?, ?)')
  const remove = database.sql.prepare('DELETE FROM account_ssh_keys WHERE name = ?')

  function isRecent({ sessionUid }: Owner): boolean {
    const ageMs = clock.now() - (sessions.find(sessionUid)?.createdAt ?? -Infinity)
    // After the wall clock was set back, the login is in the future.
    return ageMs >= 0 && ageMs <= recentMs
  }

  async function prove(
    owner: Owner,
    password: string | undefined,
    request: Omit<LoginRequest, 'userName' | 'password'>,
  ): Promise<void> {
    if (password === undefined || password === '') {
      if (isRecent(owner)) return
      throw new AppError(
        authErrors.LoginTooOld,
        'the login of this session is older than five minutes; log in again, or send password',
      )
    }
    await login.check({ ...request, userName: owner.userName, password }, 'SSH keys', (words) => {
      const problem = words === undefined ? 'password is wrong' : `password is wrong: ${words}`
      return new AppError(authErrors.OldPasswordWrong, problem, { details: { field: 'password' } })
    })
  }

  return {
    of: (userName) => {
      const row = find.get(userName)
      return row === undefined ? [] : (JSON.parse(String(row.keys)) as string[])
    },
    async change(owner, { userName, disablePasswordUpdate, sshKeys, password }, request) {
      if (userName !== undefined && userName !== '' && userName !== owner.userName)
        throw refusedField('userName', `cannot be changed: it is ${owner.userName}`)
      if (disablePasswordUpdate === true)
        throw refusedField('disablePasswordUpdate', 'cannot be true: PAM of this host decides that')
      if (sshKeys === undefined) return undefined
      const keys = readEntries(sshKeys, 'sshKeys', mostKeys, problemOfKey)
      await prove(owner, password, request)
      try {
        await verbs.call(
          setSshKeys,
          { userName: owner.userName, keys: [...keys] },
          // The account changes its own files.
          { role: 'viewer' },
        )
      } catch (error) {
        if (!(error instanceof VerbRefused)) throw error
        throw new AppError(authErrors.SshKeysRefused, error.message)
      }
      if (keys.length === 0) remove.run(owner.userName)
      else put.run(owner.userName, JSON.stringify(keys))
      const change = { userName: owner.userName, fingerprints: keys.map(fingerprintOf) }
      log.info(
        { ref: request.ref, user: owner.userName, fingerprints: change.fingerprints },
        'SSH keys changed',
      )
      onChange(change)
      return change
    },
  }
}
