import { migrations } from '../../src/edgehostd/migrations.ts'
import * as store from '../../src/store/database.ts'
import type { Logger } from '../../src/system/log.ts'

export type { Database } from '../../src/store/database.ts'

/** A database with the schema of edgehostd. */
export const openDatabase = (file: string, log: Logger) => store.openDatabase(file, log, migrations)
