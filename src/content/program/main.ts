import type { Readable } from 'node:stream'
import { answerDaemon, yieldToOthers } from '../../program/worker.ts'
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
  await answerDaemon(carryOut(order, input))
  // A refusal does not wait for the rest of the upload.
  input.destroy()
}

async function carryOut(order: Order, input: Readable): Promise<Finding> {
  switch (order.verb) {
    case 'unpack':
      return { unpacked: await unpack(order, input) }
    case 'name':
      return { named: name(order) }
    case 'examine':
      return { examined: examine(order) }
    case 'publish':
      return { published: await publish(order) }
    case 'verify':
      return { verified: await verify(order) }
  }
}

void main()
