import { readFileSync } from 'node:fs'
import { namedByDocument, namedByIndexFile } from '../uploads/references.ts'
import type { Named, NameOrder } from './protocol.ts'

/** Reads index.json, or an index or a manifest whose bytes have its digest. @throws AppError where it breaks a rule of bundles */
export function name({ file, document }: NameOrder): Named {
  const bytes = readFileSync(file)
  const blobs = document ? namedByDocument(document, bytes) : namedByIndexFile(bytes)
  return { lines: blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('') }
}
