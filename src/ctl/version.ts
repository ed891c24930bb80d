import { program } from '../base/program.ts'
import { writeOutput } from '../program/standard-output.ts'
import type { Program } from './command.ts'

// Baked in by the build.
declare const __VERSION__: string

/** `version`. */
export const printVersion: Program = async () => {
  writeOutput(`${program.ctl} ${__VERSION__}\n`)
  return undefined
}
