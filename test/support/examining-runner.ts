import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { examineCluster } from '../../src/definition/examination/examine-cluster.ts'
import { examineExport } from '../../src/definition/examination/examine-export.ts'
import { examinePack } from '../../src/definition/examination/examine-pack.ts'
import type { ClusterOrder, ExportOrder, PackOrder } from '../../src/definition/examination/protocol.ts'
import { AppError } from '../../src/errors/app-error.ts'
import type { CommandRunner } from '../../src/system/runner.ts'

/** Carries out the orders of `examine.cjs` in this process, for tests that examine hundreds of packs, profiles and clusters. */
export const createExaminingRunner = (): CommandRunner => ({
  async run(_program, _args, { input }) {
    const lines = createInterface({ input: Readable.from(input as AsyncIterable<string>) })[
      Symbol.asyncIterator
    ]()
    const order = JSON.parse(String((await lines.next()).value)) as Order
    const found = await carryOut(order, lines).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      const { kind, message, details } = error
      return { refused: { kind, message, details } }
    })
    return { exitCode: 0, stdout: JSON.stringify(found), stderr: '' }
  },
})

type Order = PackOrder | ExportOrder | ClusterOrder

async function carryOut(order: Order, lines: AsyncIterable<string>) {
  if ('pack' in order) return { pack: await examinePack(order) }
  if ('cluster' in order) return { cluster: await examineCluster(order) }
  return { profile: await examineExport(order, lines) }
}
