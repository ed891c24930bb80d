import { createInterface } from 'node:readline'
import { answerDaemon, yieldToOthers } from '../../program/worker.ts'
import { examine, judge } from './examine.ts'
import { examineCluster } from './examine-cluster.ts'
import { examineExport } from './examine-export.ts'
import { examinePack } from './examine-pack.ts'
import type {
  ClusterOrder,
  ExaminationOrder,
  ExportOrder,
  Finding,
  JudgementOrder,
  PackOrder,
} from './protocol.ts'

type Order = ExaminationOrder | JudgementOrder | PackOrder | ExportOrder | ClusterOrder

/**
 * The program with which the daemon examines archives, packs, profiles and clusters, and judges values by their patterns. Archives may come from any
 * author, and checking one takes seconds that would block the event loop of the daemon. If this process needs too much
 * memory, it is killed instead of the daemon.
 */
async function main(): Promise<void> {
  yieldToOthers(10)
  const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })[
    Symbol.asyncIterator
  ]()
  const order = JSON.parse(String((await lines.next()).value)) as Order
  await answerDaemon(carryOut(order, lines))
  // A refusal does not wait for the rest of the upload.
  process.stdin.destroy()
}

async function carryOut(order: Order, lines: AsyncIterable<string>): Promise<Finding> {
  if ('pack' in order) return { pack: await examinePack(order) }
  if ('profile' in order) return { profile: await examineExport(order, lines) }
  if ('cluster' in order) return { cluster: await examineCluster(order) }
  if ('given' in order) return { judged: await judge(order) }
  return { examined: await examine(order, lines) }
}

void main()
