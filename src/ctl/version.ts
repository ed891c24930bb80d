import { writeOutput } from '../program/standard-output.ts'
import type { Program } from './command.ts'

// Baked in by the build.
declare const __VERSION__: string

/** `edgehostctl version`. */
export const printVersion: Program = async () => {
  writeOutput(`edgehostctl ${__VERSION__}\n`)
  return undefined
}
