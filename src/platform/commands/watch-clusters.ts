import { setTimeout as sleep } from 'node:timers/promises'
import { formatTime } from '../../base/time.ts'
import { notLoggedIn } from '../../ctl/client.ts'
import type { Context } from '../../ctl/context.ts'
import { createEventScreen } from '../../ctl/event-screen.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { onInterrupt } from '../../ctl/on-interrupt.ts'
import { parseBody, toFailure, understand } from '../../ctl/reply.ts'
import { oneLine } from '../../ctl/text.ts'
import type { SpectroCluster } from '../schemas/clusters.ts'
import { newsBetween, verdictOf } from './cluster-news.ts'
import { findCluster } from './find-cluster.ts'

// Hosts report at most each ten seconds while something happens.
const lookEveryMs = 3_000
const longestPauseMs = 30_000

/** `edgeplatformctl cluster watch`. */
export async function watchCluster(context: Context<'project'>): Promise<undefined> {
  const { client, line, output } = context
  const { item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const name = understand(() => oneLine(item.metadata.name))
  const screen = createEventScreen(output, process.stderr)
  const endInterrupt = onInterrupt(() => {
    screen.end()
    output.note(`Interrupted. The host continues with the cluster ${name}.`)
  })
  try {
    await follow(context, pathOf(), name, screen)
  } finally {
    endInterrupt()
    screen.end()
  }
  return undefined
}

async function follow(
  context: Context,
  path: string,
  name: string,
  screen: ReturnType<typeof createEventScreen>,
): Promise<void> {
  let before: SpectroCluster | undefined
  for (;;) {
    const cluster = await look(context, path)
    if (cluster === undefined) {
      if (before?.status.isDeletionRequested === true) {
        context.output.note(`The cluster ${name} is deleted.`)
        return
      }
      throw new Failure('failed', `the cluster ${name} is not on the platform any more`)
    }
    for (const event of understand(() => newsBetween(before, cluster, formatTime(Date.now()))))
      await screen.show(event)
    before = cluster
    const verdict = verdictOf(cluster)
    if (verdict === 'applied') return
    if (verdict !== 'goesOn') throw new Failure(verdict.exitName, oneLine(verdict.failure))
    await sleep(lookEveryMs)
  }
}

/** The cluster, also of a platform that is away for a while; undefined where it is gone. @throws Failure */
async function look({ client, target }: Context, path: string): Promise<SpectroCluster | undefined> {
  for (let pauseMs = lookEveryMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
    try {
      const reply = await client.ask({ method: 'GET', path })
      if (reply.status === 404) return undefined
      if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
      if (reply.status === 200) return parseBody<SpectroCluster>(reply, ['metadata', 'spec', 'status'])
      if (![429, 503].includes(reply.status)) throw toFailure(reply)
    } catch (error) {
      // It has answered before.
      if (!(error instanceof Failure) || error.exitName !== 'unreachable') throw error
    }
    await sleep(pauseMs)
  }
}
