import { text } from 'node:stream/consumers'
import { answerDaemon, yieldToOthers } from '../../../program/worker.ts'
import { prepareDefinition } from './prepare-definition.ts'
import type { PrepareOrder } from './protocol.ts'

/**
 * The program with which the daemon prepares a cluster from a definition. Definitions may come from any author, and rendering one
 * takes seconds that would block the event loop of the daemon.
 */
async function main(): Promise<void> {
  yieldToOthers(5)
  // Programs that it has started end with it.
  const ended = new AbortController()
  process.once('SIGTERM', () => ended.abort())
  const order = JSON.parse(await text(process.stdin)) as PrepareOrder
  await answerDaemon(prepareDefinition(order, ended.signal))
}

void main()
