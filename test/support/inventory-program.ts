import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleProgram } from './bundle-program.ts'

let built: string | undefined

/** Path of the program that reads the inventory, built from the sources once in a test process. */
export function inventoryProgram(): string {
  if (built !== undefined) return built
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-inventory-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  built = join(folder, 'inventory.cjs')
  bundleProgram('inventory/program', built)
  return built
}
