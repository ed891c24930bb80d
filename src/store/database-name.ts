import { program } from '../base/program.ts'

/** Name of the file of the database in a state folder. */
export const databaseName = `${program.folder}.db`

/** Name of the file beside it that has the head of the audit trail; it is not a part of a backup. */
export const headName = 'audit-head'

/** Name of the folder beside it for folders that a database of unknown completeness does not name; it is not a part of a backup. */
export const asideName = 'aside'

/** Name of the file by which the next start of a platform records in its trail that the state was recovered or put aside, as its text. */
export const noteName = 'recovered'
