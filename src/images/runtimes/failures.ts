import { WireError } from './wire.ts'

/** A runtime has answered with something that is not its interface. */
export class AnswerNotUnderstood extends Error {
  override readonly name = 'AnswerNotUnderstood'
}

/** A runtime has answered with more than is read. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'

  /** @param maximum bytes, or what else is counted */
  constructor(maximum: number | string) {
    super(`the answer has more than ${typeof maximum === 'number' ? `${maximum} bytes` : maximum}`)
  }
}

/** Whether an error says that there is no socket or file. */
export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')

/** For `catch`: a host without the socket does not have the runtime. @throws other errors as they are */
export function absent(error: unknown): 'absent' {
  if (isAbsent(error)) return 'absent'
  throw error
}

/**
 * Why a runtime could not be read, for an operator: a sentence without its end.
 * @param unit of systemd that runs it
 */
export function explain(error: unknown, unit: string, limitMs: number): string {
  const look = `try: systemctl status ${unit}`
  const { name, code, message } = error as NodeJS.ErrnoException
  if (name === 'TimeoutError') return `it does not answer within ${limitMs / 1_000} s; ${look}`
  if (code === 'ECONNREFUSED') return `it does not run; ${look}`
  if (code === 'EACCES' || code === 'EPERM') return `the daemon may not read it: ${message}`
  if (code === 'ECONNRESET' || code === 'EPIPE') return `it closed the connection; ${look}`
  if (error instanceof AnswerTooLarge) return message
  if (error instanceof AnswerNotUnderstood || error instanceof WireError || error instanceof SyntaxError)
    return `its answer is not understood: ${message}; ${look}`
  return `it cannot be read: ${message}; ${look}`
}
