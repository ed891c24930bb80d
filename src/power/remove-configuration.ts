import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../system/files.ts'
import { configurationFolder } from './schemas.ts'

/** Files of an administrator that configure the daemon; none where the folder is not there. */
export const configurationFiles = async (): Promise<readonly string[]> =>
  (await readdir(configurationFolder).catch(() => []))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => join(configurationFolder, name))

/** Work of the verb `remove-configuration`. @returns the number of removed files */
export async function removeConfigurationFiles(): Promise<number> {
  const files = await configurationFiles()
  for (const file of files) await rm(file, { force: true })
  if (files.length > 0) await syncFolder(configurationFolder)
  return files.length
}
