import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { AppError } from '../../errors/app-error.ts'
import { refuseFull } from '../../errors/storage-full.ts'
import { examine } from './examine.ts'
import { judge } from './judge.ts'
import type { ExaminationOrder, Finding, JudgementOrder } from './protocol.ts'

/**
 * The program with which the daemon examines archives, and judges values by their patterns. Archives may come from any
 * author, and checking one takes seconds that would block the event loop of the daemon. If this process needs too much
 * memory, it is killed instead of the daemon.
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

/** Yields CPU time, and makes this process the first to be killed when memory is short: proc_pid_oom_score_adj(5). */
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
