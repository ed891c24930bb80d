import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile, syncFolder } from '../system/files.ts'
import { VerbRefused } from '../verbs/verb.ts'
import { configurationFolder, mainConfiguration, packagedConfiguration } from './schemas.ts'

/** Paths of the configuration; a test has folders of its own. */
export interface ConfigurationPaths {
  /** Files of an administrator. */
  readonly folder: string
  /** The file of the package, which an administrator may have edited. */
  readonly main: string
  /** The copy of it as the package has it, which nobody edits. */
  readonly packaged: string
}

const ofHost: ConfigurationPaths = {
  folder: configurationFolder,
  main: mainConfiguration,
  packaged: packagedConfiguration,
}

const filesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch((): string[] => []))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => join(folder, name))

const textOf = (path: string) => readFile(path).catch(() => undefined)

/** The configuration that a reset removes or puts back, a line for each file. */
export async function describeConfiguration({ folder, main, packaged }: ConfigurationPaths = ofHost): Promise<
  readonly string[]
> {
  const [present, original] = await Promise.all([textOf(main), textOf(packaged)])
  const isEdited = original !== undefined && present?.equals(original) !== true
  return [...(await filesIn(folder)), ...(isEdited ? [`${main}, which is then as the package has it`] : [])]
}

/**
 * Work of the verb `remove-configuration`.
 * @returns the number of files that were removed or put back
 * @throws VerbRefused without the copy of the package, before anything is removed
 */
export async function putConfigurationBack({
  folder,
  main,
  packaged,
}: ConfigurationPaths = ofHost): Promise<number> {
  const original = await textOf(packaged)
  if (original === undefined)
    throw new VerbRefused(`${packaged} is missing; install the package of edgehostd again`)
  const files = await filesIn(folder)
  for (const file of files) await rm(file, { force: true })
  if (files.length > 0) await syncFolder(folder)
  if ((await textOf(main))?.equals(original) === true) return files.length
  await replaceFile(main, original, 0o644)
  return files.length + 1
}
