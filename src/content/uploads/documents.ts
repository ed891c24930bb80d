import { readFile, stat } from 'node:fs/promises'
import type { ContentProgram } from '../program/content-program.ts'
import { createLock, type Lock } from '../../base/lock.ts'
import { namedByDocument, namedByIndexFile } from './references.ts'
import type { NamedBlob } from './wanted.ts'

/**
 * Reads index.json and the documents of uploads. What a large one names is parsed as it is iterated, so that the caller can let other
 * work run meanwhile and no list of it is in memory.
 */
export interface Documents {
  /** What one document names may take some megabytes, so all uploads take turns. */
  readonly inTurn: Lock
  /** The blobs that index.json names. @throws AppError where it breaks a rule of bundles */
  readIndexFile(file: string): Promise<Iterable<NamedBlob>>
  /** The blobs that an index or a manifest names. @param file whose bytes have its digest @throws AppError as `readIndexFile` */
  read(document: NamedBlob, file: string): Promise<Iterable<NamedBlob>>
}

// JSON.parse stops the event loop, and needs up to 20 times the bytes of the worst JSON: a larger document goes to the program.
const smallBytes = 262_144

export function createDocuments(program: Pick<ContentProgram, 'name'>): Documents {
  return {
    inTurn: createLock(),
    async readIndexFile(file) {
      const { size } = await stat(file)
      if (size <= smallBytes) return namedByIndexFile(await readFile(file))
      return parseLines((await program.name({ file })).lines)
    },
    async read(document, file) {
      if (document.sizeBytes <= smallBytes) return namedByDocument(document, await readFile(file))
      const { digest, sizeBytes, documentType, isOptional } = document
      return parseLines(
        (await program.name({ file, document: { digest, sizeBytes, documentType, isOptional } })).lines,
      )
    },
  }
}

/** @param lines a line of JSON for each */
function* parseLines(lines: string): Generator<NamedBlob> {
  for (let at = 0; at < lines.length;) {
    const end = lines.indexOf('\n', at)
    yield JSON.parse(lines.slice(at, end)) as NamedBlob
    at = end + 1
  }
}
