import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { AppError } from '../errors/app-error.ts'
import type { ErrorKind } from '../errors/define-errors.ts'
import { refuseFull } from '../errors/system-reason.ts'

/**
 * The refusal of an order of the daemon by a program, on its standard output instead of its finding; becomes an AppError of the daemon
 * (`run-worker.ts`).
 */
export interface Refused {
  readonly kind: ErrorKind
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

/**
 * Writes the finding of the work to standard output, or its refusal.
 * @throws any other error of the work; the program then fails
 */
export async function answerDaemon(work: Promise<object>): Promise<void> {
  const finding = await work.catch(refuseFull).catch(toRefusal)
  process.stdout.write(JSON.stringify(finding))
}

function toRefusal(error: unknown): { readonly refused: Refused } {
  if (!(error instanceof AppError)) throw error
  const { kind, message, details } = error
  return { refused: { kind, message, ...(details ? { details } : {}) } }
}

/** Yields CPU time, and makes this process the first to be killed when memory is short: proc_pid_oom_score_adj(5). */
export function yieldToOthers(niceness: number): void {
  for (const step of [() => setPriority(niceness), () => writeFileSync('/proc/self/oom_score_adj', '500')]) {
    try {
      step()
    } catch {
      // It is a courtesy; the work is done without it.
    }
  }
}
