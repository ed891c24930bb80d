import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { examine as examineBundle } from '../../src/content/program/examine.ts'
import { name, receiveOrder, publish, verify } from '../../src/content/program/publish.ts'
import type { Finding as ContentFinding, Order as ContentOrder } from '../../src/content/program/protocol.ts'
import { unpack } from '../../src/content/program/unpack.ts'
import { examine, judge } from '../../src/definition/examination/examine.ts'
import { examineCluster } from '../../src/definition/examination/examine-cluster.ts'
import { examineExport } from '../../src/definition/examination/examine-export.ts'
import { examinePack } from '../../src/definition/examination/examine-pack.ts'
import type {
  ClusterOrder,
  ExaminationOrder,
  ExportOrder,
  Finding,
  JudgementOrder,
  PackOrder,
} from '../../src/definition/examination/protocol.ts'
import { AppError } from '../../src/errors/app-error.ts'
import { refuseFull } from '../../src/errors/system-reason.ts'
import { CommandFailed, type CommandRunner } from '../../src/system/runner.ts'

/** Paths that stand for programs whose work is done within this process. */
export const [examineHere, contentHere] = ['/nowhere/examine.cjs', '/nowhere/content.cjs'] as const

const workers: Readonly<Record<string, (input: Readable) => Promise<object>>> = {
  async [examineHere](input) {
    const lines = createInterface({ input })[Symbol.asyncIterator]()
    return examination(JSON.parse(String((await lines.next()).value)) as Order, lines)
  },
  [contentHere]: async (input) => contentWork(await receiveOrder(input), input),
}

/**
 * Does the work of programs of the daemon within this process: what a process of its own is for, its memory and its end, is tested with one.
 * @param other runs all other programs
 */
export const createWorkersHere = (other?: CommandRunner): CommandRunner => ({
  async run(program, args, options) {
    const work = workers[args.at(-1) ?? '']
    if (!work) {
      if (!other) throw new CommandFailed(program, 'not-started', 'ENOENT')
      return other.run(program, args, options)
    }
    const { input = '', signal } = options
    const arriving = Readable.from(untilEnded(input, signal), { objectMode: false })
    // Who ends it waits until it writes no more, as with a process.
    const found = await work(arriving)
      .catch(refuseFull)
      .catch((error: unknown) => ({ error }))
    arriving.destroy()
    if (signal?.aborted) throw new CommandFailed(program, 'ended', '')
    if (!('error' in found)) return { exitCode: 0, stdout: JSON.stringify(found), stderr: '' }
    const { error } = found
    if (!(error instanceof AppError)) throw error
    const { kind, message, details } = error
    return { exitCode: 0, stdout: JSON.stringify({ refused: { kind, message, details } }), stderr: '' }
  },
})

/** What arrives, until the work is ended: its input then ends too early. */
async function* untilEnded(
  input: string | AsyncIterable<string | Uint8Array>,
  signal = new AbortController().signal,
) {
  const ended = new Promise<{ readonly done: true }>((resolve) => {
    signal.addEventListener('abort', () => resolve({ done: true }), { once: true })
  })
  const pieces = Readable.from(input)[Symbol.asyncIterator]()
  while (!signal.aborted) {
    const next = (await Promise.race([pieces.next(), ended])) as IteratorResult<string | Uint8Array>
    if (next.done === true) return
    yield next.value
  }
}

type Order = ExaminationOrder | JudgementOrder | PackOrder | ExportOrder | ClusterOrder

async function examination(order: Order, lines: AsyncIterable<string>): Promise<Finding> {
  if ('pack' in order) return { pack: await examinePack(order) }
  if ('profile' in order) return { profile: await examineExport(order, lines) }
  if ('cluster' in order) return { cluster: await examineCluster(order) }
  if ('given' in order) return { judged: await judge(order) }
  return { examined: await examine(order, lines) }
}

async function contentWork(order: ContentOrder, input: Readable): Promise<ContentFinding> {
  switch (order.verb) {
    case 'unpack':
      return { unpacked: await unpack(order, input) }
    case 'name':
      return { named: name(order) }
    case 'examine':
      return { examined: examineBundle(order) }
    case 'publish':
      return { published: await publish(order) }
    case 'verify':
      return { verified: await verify(order) }
  }
}
