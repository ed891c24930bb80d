import { program } from '../base/program.ts'
import { Type } from 'typebox'
import { absolutePath, strict } from '../config/schema-parts.ts'

/** The state folder unless the configuration names another one. */
export const defaultStateDirectory = `/var/lib/${program.folder}`

/** The log of the process. */
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

/** The data that outlives the process. */
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
