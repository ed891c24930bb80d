import { Type } from 'typebox'
import { absolutePath, strict } from '../config/schema-parts.ts'

/** Where the state lies unless the configuration says otherwise. */
export const defaultStateDirectory = '/var/lib/edgehostd'

/** What the process writes to its journal. */
export const Log = Type.Object(
  {
    level: Type.Union(
      [
        Type.Literal('fatal'),
        Type.Literal('error'),
        Type.Literal('warn'),
        Type.Literal('info'),
        Type.Literal('debug'),
        Type.Literal('trace'),
      ],
      { default: 'info', description: 'Lowest level that is written.' },
    ),
  },
  strict,
)

/** What outlives the process. */
export const State = Type.Object(
  {
    directory: Type.String({
      ...absolutePath,
      default: defaultStateDirectory,
      description: 'Database, secret, certificate and definitions.',
    }),
  },
  strict,
)
