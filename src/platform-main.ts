import { createPlatform } from './platform.ts'
import { configuration } from './platform-configuration.ts'
import { runProgram } from './run-program.ts'

/** The process edgeplatformd. */
runProgram({ configuration, createDaemon: createPlatform, isStartedAgain: false })
