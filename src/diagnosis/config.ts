import { Type, type Static } from 'typebox'
import { absolutePath, strict } from '../config/schema-parts.ts'

/** The section `diagnosis` of the configuration. */
export const Diagnosis = Type.Object(
  {
    filesDirectory: Type.String({
      ...absolutePath,
      default: '/var/log/files',
      description:
        'Folder whose files administrators may list and download; not a link. What is deeper in it is not offered.',
    }),
  },
  strict,
)

export type DiagnosisSettings = Static<typeof Diagnosis>
