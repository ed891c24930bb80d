import { readFile, stat } from 'node:fs/promises'
import type { ContentProgram } from '../program/content-program.ts'
import { createLock, type Lock } from '../../base/lock.ts'
import { createSlices } from '../../base/slices.ts'
import { namedByDocument, namedByIndexFile } from './references.ts'
import type { NamedBlob } from './wanted.ts'

/** Reads index.json and the documents of uploads. */
export interface Documents {
  /** What one document names may take some megabytes, so all uploads take turns. */
  readonly inTurn: Lock
  /** The blobs that index.json names. @throws AppError where it breaks a rule of bundles */
  readIndexFile(file: string): Promise<readonly NamedBlob[]>
  /** The blobs that an index or a manifest names. @param file whose bytes have its digest @throws AppError as `readIndexFile` */
  read(document: NamedBlob, file: string): Promise<readonly NamedBlob[]>
}

// JSON.parse stops the event loop, and needs up to 20 times the bytes of the worst JSON: a larger document goes to the program.
const smallBytes = 262_144

export function createDocuments(program: Pick<ContentProgram, 'name'>): Documents {
  async function parse(lines: string): Promise<NamedBlob[]> {
    const slice = createSlices()
    const named: NamedBlob[] = []
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf('\n', at)
      named.push(JSON.parse(lines.slice(at, end)) as NamedBlob)
      at = end + 1
      await slice()
    }
    return named
  }

  return {
    inTurn: createLock(),
    async readIndexFile(file) {
      const { size } = await stat(file)
      if (size <= smallBytes) return namedByIndexFile(await readFile(file))
      return parse((await program.name({ file })).lines)
    },
    async read(document, file) {
      if (document.sizeBytes <= smallBytes) return namedByDocument(document, await readFile(file))
      const { digest, sizeBytes, documentType, isOptional } = document
      return parse(
        (await program.name({ file, document: { digest, sizeBytes, documentType, isOptional } })).lines,
      )
    },
  }
}
