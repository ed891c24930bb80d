import { Type } from 'typebox'

/** The query of every write that can be tried. Another name is refused: with `dryrun` the write would be done. */
export const DryRunQuery = Type.Object(
  {
    dryRun: Type.Optional(
      Type.Boolean({ default: false, description: 'Only check and plan; nothing is changed.' }),
    ),
  },
  { additionalProperties: false },
)
