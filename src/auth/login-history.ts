import type { Database } from '../store/database.ts'
import type { Client } from '../base/client.ts'

/** The successful logins on this host and their clients. */
export interface LoginHistory {
  /** Records a success; returns true for the first login of the account on this host. */
  record(userName: string, client: Client, now: number): boolean
  /**
   * Whether this user has logged in from this client; if none of the user's addresses in a network is known, from that
   * network.
   */
  isKnown(userName: string, client: Client): boolean
  /** Whether any user has logged in from exactly this client. */
  isKnownClient(client: Client): boolean
}

// Enough for every workplace of an operator; the oldest address is replaced.
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
          // An entry for the whole network, from when it was not known to be on-link, is replaced.
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
