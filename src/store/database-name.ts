import { program } from '../base/program.ts'

/** Name of the file of the database in a state folder. */
export const databaseName = `${program.folder}.db`
