import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { examine } from '../../src/definition/examination/examine.ts'
import { examineCluster } from '../../src/definition/examination/examine-cluster.ts'
import { examineExport } from '../../src/definition/examination/examine-export.ts'
import { examinePack } from '../../src/definition/examination/examine-pack.ts'
import { judge } from '../../src/definition/examination/judge.ts'
import type {
  ClusterOrder,
  ExaminationOrder,
  ExportOrder,
  Finding,
  JudgementOrder,
  PackOrder,
} from '../../src/definition/examination/protocol.ts'
import { AppError } from '../../src/errors/app-error.ts'
import { CommandFailed, type CommandRunner } from '../../src/system/runner.ts'

/** Path that stands for `examine.cjs` within this process. */
export const examinedHere = '/nowhere/examine.cjs'

/** Carries out the orders of `examine.cjs` in this process: what a process of its own is for, its memory and its end, is tested with one. */
export const createExaminingRunner = (): CommandRunner => ({
  async run(program, _args, { input, signal }) {
    // Who ends it waits until it writes no more, as with a process.
    const found = await answer(linesOf(input as AsyncIterable<string>, signal)).catch((error: unknown) => ({
      error,
    }))
    if (signal?.aborted) throw new CommandFailed(program, 'ended', '')
    if ('error' in found) throw found.error
    return { exitCode: 0, stdout: JSON.stringify(found), stderr: '' }
  },
})

/** The lines of a text that arrives, until it is ended. */
async function* linesOf(input: AsyncIterable<string>, signal = new AbortController().signal) {
  const ended = new Promise<{ readonly done: true }>((resolve) => {
    signal.addEventListener('abort', () => resolve({ done: true }), { once: true })
  })
  const lines = createInterface({ input: Readable.from(input) })[Symbol.asyncIterator]()
  while (!signal.aborted) {
    const next = await Promise.race([lines.next(), ended])
    if (next.done === true) return
    yield next.value
  }
}

async function answer(lines: AsyncIterableIterator<string>): Promise<object> {
  const order = JSON.parse(String((await lines.next()).value)) as Order
  return carryOut(order, lines).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error
    const { kind, message, details } = error
    return { refused: { kind, message, details } }
  })
}

type Order = ExaminationOrder | JudgementOrder | PackOrder | ExportOrder | ClusterOrder

async function carryOut(order: Order, lines: AsyncIterable<string>): Promise<Finding> {
  if ('pack' in order) return { pack: await examinePack(order) }
  if ('profile' in order) return { profile: await examineExport(order, lines) }
  if ('cluster' in order) return { cluster: await examineCluster(order) }
  if ('given' in order) return { judged: await judge(order) }
  return { examined: await examine(order, lines) }
}
