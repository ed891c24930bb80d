import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { examineExport } from '../../src/definition/examination/examine-export.ts'
import { examinePack } from '../../src/definition/examination/examine-pack.ts'
import type { ExportOrder, PackOrder } from '../../src/definition/examination/protocol.ts'
import { AppError } from '../../src/errors/app-error.ts'
import type { CommandRunner } from '../../src/system/runner.ts'

/** Carries out the orders of `examine.cjs` in this process, for tests that examine hundreds of packs and profiles. */
export const createExaminingRunner = (): CommandRunner => ({
  async run(_program, _args, { input }) {
    const lines = createInterface({ input: Readable.from(input as AsyncIterable<string>) })[
      Symbol.asyncIterator
    ]()
    const order = JSON.parse(String((await lines.next()).value)) as PackOrder | ExportOrder
    const found = await carryOut(order, lines).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      const { kind, message, details } = error
      return { refused: { kind, message, details } }
    })
    return { exitCode: 0, stdout: JSON.stringify(found), stderr: '' }
  },
})

const carryOut = async (order: PackOrder | ExportOrder, lines: AsyncIterable<string>) =>
  'pack' in order ? { pack: await examinePack(order) } : { profile: await examineExport(order, lines) }
