import type { Database } from '../store/database.ts'
import type { Client } from '../base/client.ts'

/** Who has logged in on this host, and from where. */
export interface LoginHistory {
  /** Records a success; true when it is the account's first on this host. */
  record(userName: string, client: Client, now: number): boolean
  /** Whether this user has logged in from there; where none of the user's addresses in a network is known, from it. */
  isKnown(userName: string, client: Client): boolean
  /** Whether a user has logged in from exactly there. */
  isKnownClient(client: Client): boolean
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
  const removeAddress = sql.prepare('DELETE FROM account_address WHERE name = ? AND address = ?')
  const findAddress = sql.prepare('SELECT 1 FROM account_address WHERE name = ? AND address = ?')
  const findClient = sql.prepare('SELECT 1 FROM account_address WHERE address = ?')
  const isThere = (name: string, address: string) => findAddress.get(name, address) !== undefined
  return {
    record: (userName, { name: address, network }, now) =>
      transaction(() => {
        const name = userName.toLowerCase()
        if (renewAddress.run(now, name, address).changes === 0) {
          putAddress.run(name, address, now)
          // What was known of the whole network, from a time when it was not known to be on a link, has served.
          if (network !== undefined) removeAddress.run(name, network)
          trimAddresses.run(name)
        }
        return insertAccount.run(userName, now).changes > 0
      }),
    isKnown(userName, { name: address, network }) {
      const name = userName.toLowerCase()
      return isThere(name, address) || (network !== undefined && isThere(name, network))
    },
    isKnownClient: ({ name }) => findClient.get(name) !== undefined,
  }
}
