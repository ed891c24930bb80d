import { commandTable } from './platform-nouns.ts'
import { runCommandLine } from './run.ts'

/** The process edgeplatformctl. */
runCommandLine(commandTable)
