import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../system/files.ts'
import type { VerbWork } from '../verbs/verb.ts'
import { configurationFolder, type removeConfiguration } from './verbs.ts'

/** Names of the files that the daemon reads there. */
const isRead = (name: string) => name.endsWith('.yaml')

/** Work of the verb `remove-configuration`; a folder that is not there has none. */
export const removeConfigurationFiles: VerbWork<(typeof removeConfiguration)['input'], number> = async () => {
  const names = (await readdir(configurationFolder).catch(() => [])).filter(isRead)
  for (const name of names) await rm(join(configurationFolder, name), { force: true })
  if (names.length > 0) await syncFolder(configurationFolder)
  return names.length
}

/** The files that it would remove. */
export const configurationFiles = async (): Promise<readonly string[]> =>
  (await readdir(configurationFolder).catch(() => []))
    .filter(isRead)
    .map((name) => join(configurationFolder, name))
