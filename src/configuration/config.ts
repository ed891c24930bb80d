import { Type, type Static } from 'typebox'
import { strict } from '../config/schema-parts.ts'

/** What user data may do with this host. */
export const UserDataSection = Type.Object(
  {
    stages: Type.Boolean({
      default: false,
      description:
        'Whether administrators may send stages in user data: commands and files of root, which are run once.',
    }),
  },
  strict,
)
export type UserDataSettings = Static<typeof UserDataSection>
