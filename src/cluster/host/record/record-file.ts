import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { replaceFile } from '../../../system/files.ts'
import type { HostRecord } from './host-state.ts'

/**
 * Reads the record of the host.
 * @returns undefined where there is none, `damaged` where the file is not a record of this version
 */
export async function readHostRecord(file: string): Promise<HostRecord | 'damaged' | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const record = JSON.parse(text) as Partial<HostRecord> | null
    return record?.version === 1 && record.state ? (record as HostRecord) : 'damaged'
  } catch {
    return 'damaged'
  }
}

export async function writeHostRecord(file: string, record: HostRecord): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await replaceFile(file, JSON.stringify(record), 0o600)
}
