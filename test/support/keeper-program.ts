import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleProgram } from './bundle-program.ts'

let built: string | undefined

/** Path of the program that keeps a run, built from the sources once in a test process. */
export function keeperProgram(): string {
  if (built !== undefined) return built
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-keeper-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  built = join(folder, 'keeper.cjs')
  bundleProgram('system/lasting', built)
  return built
}
