import { createInterface } from 'node:readline'
import { answerDaemon, yieldToOthers } from '../../program/worker.ts'
import { examine } from './examine.ts'
import { judge } from './judge.ts'
import type { ExaminationOrder, Finding, JudgementOrder } from './protocol.ts'

/**
 * The program with which the daemon examines archives, and judges values by their patterns. Archives may come from any
 * author, and checking one takes seconds that would block the event loop of the daemon. If this process needs too much
 * memory, it is killed instead of the daemon.
 */
async function main(): Promise<void> {
  yieldToOthers(10)
  const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })[
    Symbol.asyncIterator
  ]()
  const order = JSON.parse(String((await lines.next()).value)) as ExaminationOrder | JudgementOrder
  await answerDaemon(carryOut(order, lines))
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

void main()
