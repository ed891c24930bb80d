import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createRecordParser } from '../../../src/content/format/record.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/**
 * Reads the folder of the content of a running daemon, without it: each blob is hashed, and is there if, and only if, a record
 * names it. @returns the identities of the bundles that have a record
 */
export async function inspectContent(folder: string): Promise<string[]> {
  const records = await readdir(join(folder, 'bundles'))
  const named = new Set<string>()
  const found: string[] = []
  for (const name of records) {
    const parser = createRecordParser({ onBlob: ([digest]) => named.add(digest.slice(7)) })
    parser.add(await readFile(join(folder, 'bundles', name)))
    const { uid, indexDigest } = parser.end()
    expect(name).toBe(`${uid}.jsonl`)
    expect(named, 'the record names its index.json').toContain(indexDigest.slice(7))
    found.push(indexDigest)
  }
  const blobs = join(folder, 'blobs/sha256')
  const held = (await readdir(blobs)).sort()
  const broken: string[] = []
  for (const hex of held) if (sha256(await readFile(join(blobs, hex))) !== hex) broken.push(hex)
  expect(broken, 'blobs with other bytes').toEqual([])
  expect(held, 'blobs that records name').toEqual([...named].sort())
  expect(await readdir(join(folder, 'damaged'))).toEqual([])
  return found
}
