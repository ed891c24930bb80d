import type { FileMetadataList } from '../../src/diagnosis/schemas.ts'

const files: FileMetadataList = {
  files: [
    {
      fileName: 'press-core.1403.zst',
      size: '18349212',
      creationTimestamp: '2026-01-31T09:31:00.000Z',
      lastModifiedTimestamp: '2026-01-31T09:31:02.000Z',
    },
  ],
}

/** Replies of the diagnosis of a host, by the names of its operations. */
export const diagnosisExamples: Readonly<Record<string, { readonly reply: unknown }>> = {
  listFiles: { reply: files },
}
