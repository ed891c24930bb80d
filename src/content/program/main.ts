import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import type { Readable } from 'node:stream'
import { AppError } from '../../errors/app-error.ts'
import { refuseFull } from '../../errors/storage-full.ts'
import { examine } from './examine.ts'
import { openInput } from './input.ts'
import { name } from './name.ts'
import { receiveOrder } from './order.ts'
import type { Finding, Order } from './protocol.ts'
import { publish } from './publish.ts'
import { unpack } from './unpack.ts'
import { verify } from './verify.ts'

/**
 * The program with which the daemon unpacks, examines, publishes and verifies bundles. Bundles may come from any author
 * and have 100,000 files, which would block the event loop of the daemon. If this process needs too much memory, it is
 * killed instead of the daemon.
 */
async function main(): Promise<void> {
  const input = openInput()
  const order = await receiveOrder(input)
  yieldToOthers(order.verb === 'verify' ? 19 : 10)
  const finding = await carryOut(order, input).catch(refuseFull).catch(toFinding)
  process.stdout.write(JSON.stringify(finding))
  // A refusal does not wait for the rest of the upload.
  input.destroy()
}

async function carryOut(order: Order, input: Readable): Promise<Finding> {
  switch (order.verb) {
    case 'unpack':
      return { unpacked: await unpack(order, input) }
    case 'name':
      return { named: await name(order) }
    case 'examine':
      return { examined: examine(order) }
    case 'publish':
      return { published: await publish(order) }
    case 'verify':
      return { verified: await verify(order) }
  }
}

function toFinding(error: unknown): Finding {
  if (!(error instanceof AppError)) throw error
  const { kind, message, details } = error
  return { refused: { kind, message, ...(details ? { details } : {}) } }
}

/** Yields CPU time, and makes this process the first to be killed when memory is short: proc_pid_oom_score_adj(5). */
function yieldToOthers(niceness: number): void {
  for (const step of [() => setPriority(niceness), () => writeFileSync('/proc/self/oom_score_adj', '500')]) {
    try {
      step()
    } catch {
      // It is a courtesy; the work is done without it.
    }
  }
}

void main()
