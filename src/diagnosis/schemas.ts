import { Type, type Static } from 'typebox'

// Wire names of the published API.

const Timestamp = Type.String({ format: 'date-time' })

export const FileMetadata = Type.Object({
  fileName: Type.String(),
  size: Type.String({ description: 'Bytes, as decimal text.' }),
  creationTimestamp: Timestamp,
  lastModifiedTimestamp: Timestamp,
})
/** A file that may be downloaded. */
export type FileMetadata = Static<typeof FileMetadata>

export const FileMetadataList = Type.Object({
  files: Type.Array(FileMetadata, { description: 'By name.' }),
  omitted: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Entries of the folder that are not offered: folders, links, pipes, devices, files with a second hard link or with a name that is not UTF-8, and all beyond 10,000.',
    }),
  ),
})
export type FileMetadataList = Static<typeof FileMetadataList>
