import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { AppError } from '../../errors/app-error.ts'
import { refuseFull } from '../../errors/storage-full.ts'
import { examine } from './examine.ts'
import { judge } from './judge.ts'
import type { ExaminationOrder, Finding, JudgementOrder } from './protocol.ts'

/**
 * The process in which the daemon has archives examined, and values judged by their patterns: they may come from anywhere,
 * and checking one takes seconds in which an event loop answers no request. If it needs too much memory, it ends and not the
 * daemon.
 */
async function main(): Promise<void> {
  yieldToOthers()
  const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })[
    Symbol.asyncIterator
  ]()
  const order = JSON.parse(String((await lines.next()).value)) as ExaminationOrder | JudgementOrder
  const finding = await carryOut(order, lines).catch(refuseFull).catch(toFinding)
  process.stdout.write(JSON.stringify(finding))
  // A refusal does not wait for the rest of the upload.
  process.stdin.destroy()
}

async function carryOut(
  order: ExaminationOrder | JudgementOrder,
  lines: AsyncIterable<string>,
): Promise<Finding> {
  if ('given' in order) return { judged: await judge(order) }
  return { examined: await examine(order, lines) }
}

function toFinding(error: unknown): Finding {
  if (!(error instanceof AppError)) throw error
  const { kind, message, details } = error
  return { refused: { kind, message, ...(details ? { details } : {}) } }
}

/** In time and, where memory is short, in life: oom_score_adj, proc_pid_oom_score_adj(5). */
function yieldToOthers(): void {
  for (const step of [() => setPriority(10), () => writeFileSync('/proc/self/oom_score_adj', '500')]) {
    try {
      step()
    } catch {
      // It is a courtesy; the examination works without it.
    }
  }
}

void main()
