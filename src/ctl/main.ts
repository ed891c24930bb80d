import { commandTable } from './nouns.ts'
import { runCommandLine } from './run.ts'

/** The process edgehostctl. */
runCommandLine(commandTable)
