import { Type, type Static } from 'typebox'
import { absolutePath, positive, strict } from '../config/schema-parts.ts'

/** The section `diagnosis` of the configuration. */
export const Diagnosis = Type.Object(
  {
    filesDirectory: Type.String({
      ...absolutePath,
      default: '/var/log/files',
      description:
        'Folder whose files administrators may list and download; not a link. What is deeper in it is not offered.',
    }),
    archive: Type.Object(
      {
        keptHours: positive(24, 720, 'Hours after which the generated support archive is removed.'),
        limitBytes: Type.Integer({
          minimum: 1_048_576,
          maximum: 4_294_967_296,
          default: 268_435_456,
          description: 'Most bytes of a generated support archive; a larger one fails.',
        }),
      },
      strict,
    ),
  },
  strict,
)

export type DiagnosisSettings = Static<typeof Diagnosis>
