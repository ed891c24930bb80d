import { createPlatform } from './root.ts'
import { configuration } from './declarations.ts'
import { runProgram } from '../root/run-program.ts'

/** The process edgeplatformd. */
runProgram({ configuration, createDaemon: createPlatform, isStartedAgain: false })
