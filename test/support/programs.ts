import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleProgram } from './bundle-program.ts'

/** Gives the path of a program that is built from a folder of src, once in a test process. */
function builtOnce(name: string, source: string, of?: Parameters<typeof bundleProgram>[2]): () => string {
  let built: string | undefined
  return () => {
    if (built !== undefined) return built
    const folder = mkdtempSync(join(tmpdir(), `edgehostd-${name}-`))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    built = join(folder, `${name}.cjs`)
    bundleProgram(source, built, of)
    return built
  }
}

/** Path of the program that examines archives. */
export const examineProgram = builtOnce('examine', 'definition/examination')
/** Path of the program that unpacks, examines, publishes and verifies bundles. */
export const contentProgram = builtOnce('content', 'content/program')
/** Path of the program that reads the inventory. */
export const inventoryProgram = builtOnce('inventory', 'inventory/program')
/** Path of the program that does one action of a step. */
export const stepProgram = builtOnce('step', 'cluster/step-program')
/** Path of the program that prepares a cluster. */
export const prepareProgram = builtOnce('prepare', 'cluster/prepare')
/** Path of the program that keeps a run. */
export const keeperProgram = builtOnce('keeper', 'system/lasting')
/** Path of edgehostctl. */
export const ctlProgram = builtOnce('edgehostctl', 'edgehostctl')
/** Path of edgeplatformctl. */
export const platformCtlProgram = builtOnce('edgeplatformctl', 'edgeplatformctl', {
  program: 'edgeplatformd',
  file: 'main.ts',
})
/** Path of the program of `edgehostctl platform connect` and `platform disconnect`. */
export const connectProgram = builtOnce('platform', 'connect')
/** Path of the program of `edgehostctl definition` and `content build`. */
export const authoringProgram = builtOnce('definition', 'authoring')
