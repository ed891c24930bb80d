import type { Database } from '../store/database.ts'

/** Who has logged in on this host, and from where. */
export interface LoginHistory {
  /** Records a success; true when it is the account's first on this host. */
  record(userName: string, addressGroup: string, now: number): boolean
  isKnownAddress(userName: string, addressGroup: string): boolean
}

// Enough for every desk an operator works at; the oldest gives way.
const addressesPerUser = 32

export function createLoginHistory({ sql, transaction }: Database): LoginHistory {
  const insertAccount = sql.prepare('INSERT OR IGNORE INTO account (name, first_login_at) VALUES (?, ?)')
  const renewAddress = sql.prepare(
    'UPDATE account_address SET last_success_at = ? WHERE name = ? AND address = ?',
  )
  const putAddress = sql.prepare(
    'INSERT INTO account_address (name, address, last_success_at) VALUES (?, ?, ?)',
  )
  const trimAddresses = sql.prepare(
    `DELETE FROM account_address WHERE name = ?1 AND address NOT IN
       (SELECT address FROM account_address WHERE name = ?1 ORDER BY last_success_at DESC LIMIT ${addressesPerUser})`,
  )
  const findAddress = sql.prepare('SELECT 1 FROM account_address WHERE name = ? AND address = ?')
  return {
    record: (userName, addressGroup, now) =>
      transaction(() => {
        const name = userName.toLowerCase()
        if (renewAddress.run(now, name, addressGroup).changes === 0) {
          putAddress.run(name, addressGroup, now)
          trimAddresses.run(name)
        }
        return insertAccount.run(userName, now).changes > 0
      }),
    isKnownAddress: (userName, addressGroup) =>
      findAddress.get(userName.toLowerCase(), addressGroup) !== undefined,
  }
}
