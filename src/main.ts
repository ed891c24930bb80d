import { configuration } from './configuration.ts'
import { createDaemon } from './daemon.ts'
import { runProgram } from './run-program.ts'

/** The process edgehostd. */
runProgram({ configuration, createDaemon, isStartedAgain: true })
