import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unitFolder } from './paths.ts'
import { unitHeading } from './unit-files.ts'

/** Whether a unit in the folder of the administrator was written by edgehostd. */
export async function isOwnUnit(unit: string): Promise<boolean> {
  const text = await readFile(join(unitFolder, unit), 'utf8').catch(() => '')
  return text.startsWith(unitHeading)
}
