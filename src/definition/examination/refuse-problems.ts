import { AppError } from '../../errors/app-error.ts'
import type { ErrorKind } from '../../errors/define-errors.ts'
import type { Problem } from '../definition.ts'

// More than a person reads in one reply.
const problemLimit = 100

/** Refuses content that has errors; `details.problems` lists them. @throws AppError of this kind, if there are any */
export function refuseErrors(kind: ErrorKind, problems: readonly Problem[]): void {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const [first] = errors
  if (!first) return
  const more = errors.length > 1 ? `; ${errors.length - 1} more in details.problems` : ''
  throw new AppError(kind, `${first.place}: ${first.message}${more}`, {
    details: { count: errors.length, problems: errors.slice(0, problemLimit) },
  })
}
