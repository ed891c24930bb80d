import { commandTable } from './nouns.ts'
import { runCommandLine } from '../ctl/command-line.ts'

/** The process edgehostctl. */
runCommandLine(commandTable)
