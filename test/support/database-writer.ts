// Writes records as fast as it can and prints each number once it is on the disk; for tests that kill it.
import { writeSync } from 'node:fs'
import { openDatabase } from './open-database.ts'
import { captureLog } from './https-server.ts'

const [file = ''] = process.argv.slice(2)
const { sql, transaction } = openDatabase(file, captureLog().log)
const insert = sql.prepare('INSERT INTO account (name, first_login_at) VALUES (?, ?)')
const { next } = sql.prepare('SELECT count(*) AS next FROM account').get() as { next: number }
for (let number = next; ; number += 1) {
  transaction(() => insert.run(`user ${number}`, number))
  writeSync(1, `${number}\n`)
}
