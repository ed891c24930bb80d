import { setTimeout as sleep } from 'node:timers/promises'
import { notLoggedIn } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parseBody, toFailure } from '../../ctl/reply.ts'
import type { ClusterRevisions } from '../change/schemas.ts'
import { revisionsPath, type HostContext, type Revision } from './change-host.ts'
import { showUntil } from './watch.ts'

const acceptedReasons = ['UpdateAccepted', 'UpdateScheduled', 'UpdateHeld']
// Reasons after which a revision may have ended.
const turns = [
  ...acceptedReasons,
  ...['UpdateStarted', 'Updated', 'UpdateFailed', 'RolledBack', 'RollbackFailed'],
  ...['Running', 'Deleting', 'Deleted'],
]

/**
 * Shows what happens since a revision was accepted, until it is good. The host continues whatever becomes of this program.
 * @throws Failure where it was taken back, a later one took its place, or the cluster is deleted
 */
export async function followRevision(context: HostContext, revision: number): Promise<void> {
  const isOfIt = new RegExp(`^revision ${revision}\\b`)
  await showUntil(context, {
    isFirst: ({ reason, message }) => acceptedReasons.includes(reason) && isOfIt.test(message),
    async isLast({ reason, message }) {
      if (!turns.includes(reason)) return false
      if (reason === 'Deleting' || reason === 'Deleted') throw deleted()
      return hasEnded(await readPatiently(context), revision, reason === 'RollbackFailed' ? message : '')
    },
    isPatient: true,
    interrupted: `Interrupted. The host continues with revision ${revision}: edgehostctl cluster watch`,
  })
}

/**
 * Whether a revision is good. Pure.
 * @param stuck why the way back, or a restoration that was asked for, does not come either; empty otherwise
 * @throws Failure where it will not be good
 */
export function hasEnded(revisions: readonly Revision[], revision: number, stuck: string): boolean {
  const found = revisions.find((each) => each.revision === revision)
  const name = `revision ${revision}`
  const fail = (text: string) => new Failure('failed', text)
  const see = 'see: edgehostctl cluster events'
  const active = revisions.find(({ isActive }) => isActive)
  switch (found?.outcome) {
    case 'good':
      return true
    case 'rolledBack': {
      // Its reason says what runs again.
      if (active?.origin === 'goingBack' && active.revision > revision)
        throw fail(`${name} failed, and was taken back: ${found.reason ?? see}`)
      const back = active === undefined ? 'the last good one' : `revision ${active.revision}`
      throw fail(`${name} failed, and ${back} runs again: ${found.reason ?? see}`)
    }
    case 'failed':
      if (stuck !== '') throw fail(`${name} failed, and the way back too: ${stuck}`)
      // A later write took the place of the way back.
      if (active && active.revision > revision && active.origin !== 'goingBack')
        throw fail(
          `${name} failed, and revision ${active.revision} is applied instead: ${found.reason ?? see}`,
        )
      return false
    case 'held':
      throw fail(
        `${name} is held: ${found.reason ?? see}; give the values: edgehostctl cluster apply --set NAME=VALUE`,
      )
    case 'superseded':
      throw fail(`a later change took the place of ${name}: edgehostctl cluster revisions`)
    case undefined:
      throw fail(`${name} is not kept any more: edgehostctl cluster revisions`)
    case 'applying':
      if (stuck !== '') throw fail(`${name} is not good, and there is no way back by itself: ${stuck}`)
      return false
    case 'waiting':
      return false
  }
}

const deleted = () => new Failure('failed', 'the cluster was deleted meanwhile')

const firstPauseMs = 500
const longestPauseMs = 15_000

/** The revisions, also of a host that is away for a while, as while its daemon is restarted. @throws Failure */
async function readPatiently(context: HostContext): Promise<readonly Revision[]> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
    try {
      const revisions = await askRevisions(context)
      if (revisions !== 'later') return revisions
    } catch (error) {
      if (!(error instanceof Failure) || error.exitName !== 'unreachable') throw error
    }
    await sleep(pauseMs)
  }
}

async function askRevisions({ client, target }: HostContext): Promise<readonly Revision[] | 'later'> {
  const reply = await client.ask({ method: 'GET', path: revisionsPath })
  // A daemon that starts, stops or has too much to do.
  if ([429, 503].includes(reply.status)) return 'later'
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (reply.status === 404) throw deleted()
  if (reply.status !== 200) throw toFailure(reply)
  return parseBody<ClusterRevisions>(reply, ['items']).items
}
