import { configuration } from './declarations.ts'
import { createDaemon } from './root.ts'
import { runProgram } from '../root/run-program.ts'

/** The process edgehostd. */
runProgram({ configuration, createDaemon, isStartedAgain: true })
