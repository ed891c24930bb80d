import { type ShownEvent, createEventScreen } from '../../ctl/cluster.ts'
import type { SpectroCluster } from './schemas.ts'
import { silenceOf, desiredNow, desiredOf, findCluster } from '../commands/find.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatTime } from '../../base/time.ts'
import { notLoggedIn, type Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { onInterrupt } from '../../ctl/terminal.ts'
import { parseBody, toFailure, understand } from '../../ctl/reply.ts'
import { oneLine } from '../../ctl/layout.ts'

type Step = NonNullable<SpectroCluster['status']['steps']>[number]

/**
 * Events of a cluster between two polls, in order. Pure.
 * @param before undefined at the first poll: then all events
 * @param now RFC 3339; for events without a time of their own
 */
export function newsBetween(
  before: SpectroCluster | undefined,
  after: SpectroCluster,
  now: string,
): readonly ShownEvent[] {
  const event = (reason: string, message: string, severity: ShownEvent['severity'] = 'Normal') => ({
    reason,
    message,
    severity,
    metadata: { creationTimestamp: now },
  })
  const known = new Map((before?.status.steps ?? []).map((step) => [step.key, step]))
  const steps = (after.status.steps ?? []).flatMap((step) => stepNews(known.get(step.key), step, now))
  const { number } = after.spec
  const { state, message = '' } = after.status
  const desired = desiredNow(after)
  const isNewState = before?.status.state !== state
  const silence = silenceOf(after)
  return [
    ...(before?.spec.number === number ? [] : [event('Wanted', `number ${number}`)]),
    ...steps.toSorted((one, other) => timeOf(one) - timeOf(other)),
    ...(isNewState ? [event(state, message, state === 'Error' ? 'Error' : 'Normal')] : []),
    ...(desired && !isSame(before && desiredOf(before), desired)
      ? [
          event(
            desired.reason ?? '',
            desired.message ?? '',
            desired.status === 'False' ? 'Warning' : 'Normal',
          ),
        ]
      : []),
    ...(silence !== undefined && (before === undefined || silenceOf(before) === undefined)
      ? [event('HostSilent', silence, 'Warning')]
      : []),
  ]
}

const timeOf = ({ metadata }: ShownEvent) => Date.parse(metadata.creationTimestamp)

type Desired = NonNullable<ReturnType<typeof desiredOf>>

const isSame = (one: Desired | undefined, other: Desired | undefined): boolean =>
  one?.status === other?.status &&
  one?.reason === other?.reason &&
  one?.message === other?.message &&
  one?.observedGeneration === other?.observedGeneration

function stepNews(before: Step | undefined, step: Step, now: string): ShownEvent[] {
  const { key, title, state, failures, reason = '', startTimestamp = now, endTimestamp = now } = step
  const isOther = before?.startTimestamp !== step.startTimestamp
  if (!isOther && before?.state === state && before.failures === failures) return []
  const event = (name: string, message: string, at: string, severity: ShownEvent['severity'] = 'Normal') => ({
    reason: name,
    message,
    severity,
    step: key,
    metadata: { creationTimestamp: at },
  })
  const started = isOther || !before
  return [
    ...(started ? [event(failures > 0 ? 'StepRetried' : 'StepStarted', title, startTimestamp)] : []),
    ...(state === 'done' ? [event('StepDone', title, endTimestamp)] : []),
    ...(state === 'failed' ? [event('StepFailed', `${title}: ${reason}`, endTimestamp, 'Error')] : []),
  ]
}

/** Meaning of a poll of a cluster for one who waits. */
export type Verdict =
  'goesOn' | 'applied' | { readonly failure: string; readonly exitName: 'failed' | 'hostSilent' }

// Reasons to wait for an operator; the ones that the host retries are not here.
const endsOf: Readonly<Record<string, string>> = {
  Refused: 'the host has refused it',
  ContentMissing: 'content is missing on the host',
  NewerOnHost: 'the host has something newer; to take it back: cluster apply',
  DeletedOnHost: 'the cluster was deleted on the host; to make it again: cluster apply',
  ClusterExists: 'the host has another cluster',
}

const newerThanDeletion =
  'the host has something newer, and leaves the deletion; to have it deleted all the same: cluster delete, to keep it: cluster apply --cancel-deletion'

/** Verdict on the newest change of a cluster. Pure. */
export function verdictOf(cluster: SpectroCluster): Verdict {
  const { spec, status } = cluster
  const { reason = '', message = '', observedGeneration = 0 } = desiredOf(cluster) ?? {}
  const silence = silenceOf(cluster)
  const goesOn: Verdict =
    silence === undefined
      ? 'goesOn'
      : { failure: `number ${spec.number} waits: ${silence}`, exitName: 'hostSilent' }
  // The condition of an earlier change stays until the host has dealt with the last one.
  if (observedGeneration < spec.number) return goesOn
  const isDeletion = status.isDeletionRequested
  if (reason === 'Applied') {
    if (isDeletion) return goesOn
    if (silence === undefined) return 'applied'
    return {
      failure: `number ${spec.number} was applied, and since then: ${silence}`,
      exitName: 'hostSilent',
    }
  }
  const why = isDeletion && reason === 'NewerOnHost' ? newerThanDeletion : endsOf[reason]
  if (why === undefined) return goesOn
  return { failure: message === '' ? why : `${why}: ${message}`, exitName: 'failed' }
}

// Hosts report at most each ten seconds while something happens.
const pollEveryMs = 3_000
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
    const cluster = await poll(context, path)
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
    await sleep(pollEveryMs)
  }
}

/** The cluster, also of a platform that is away for a while; undefined where it is gone. @throws Failure */
async function poll({ client, target }: Context, path: string): Promise<SpectroCluster | undefined> {
  for (let pauseMs = pollEveryMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
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
