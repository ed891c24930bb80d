import { AppError } from '../../src/errors/app-error.ts'

/** The AppError that an action throws; any other outcome fails the test. */
export function refusalOf(action: () => unknown): {
  code: string
  message: string
  details: Record<string, unknown>
} {
  try {
    action()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { code: error.code, message: error.message, details: { ...error.details } }
  }
  throw new Error('nothing was refused')
}
