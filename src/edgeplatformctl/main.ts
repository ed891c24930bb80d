import { commandTable } from './nouns.ts'
import { runCommandLine } from '../ctl/command-line.ts'

/** The process edgeplatformctl. */
runCommandLine(commandTable)
