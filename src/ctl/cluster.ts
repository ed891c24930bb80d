import type { ClusterDeadline, ClusterDetails } from '../cluster/schemas.ts'
import { getIfThere, type Context } from './client.ts'
import { Failure } from './exit-codes.ts'
import { removeOnSignal } from '../program/remove-on-signal.ts'
import { placeFile } from '../system/place-file.ts'
import type { Output } from './output.ts'
import { displayWidth, moment, oneLine, span, wrapBelow } from './layout.ts'
import { createStatusLine, type MaybeTerminal } from '../program/status-line.ts'
import type { Event } from '../cluster/events/schemas.ts'

export const clusterPath = '/v1/edge-mgmt/cluster'
export const hostPath = '/v1/edge-mgmt/edgehosts/current'

interface DetailsRequest {
  /** Its delivery is audited. */
  readonly withKubeconfig?: boolean
}

/** The cluster; undefined where there is none. @throws Failure */
export async function readDetails(
  { client }: Pick<Context, 'client'>,
  { withKubeconfig = false }: DetailsRequest = {},
): Promise<ClusterDetails | undefined> {
  const path = `${clusterPath}/details${withKubeconfig ? '' : '?kubeconfig=false'}`
  return getIfThere<ClusterDetails>(client, path, ['metadata', 'spec', 'status'])
}

/** The cluster. @throws Failure, also where there is none */
export async function requireDetails(
  context: Pick<Context, 'client'>,
  request?: DetailsRequest,
): Promise<ClusterDetails> {
  const details = await readDetails(context, request)
  if (details === undefined) throw noCluster()
  return details
}

/** The version of Kubernetes that runs, and beside it the one to which it is being changed. */
export const shownVersion = ({
  k8sVersion,
  k8sTargetVersion,
}: Pick<ClusterDetails['status'], 'k8sVersion' | 'k8sTargetVersion'>): string =>
  k8sTargetVersion === undefined ? k8sVersion : `${k8sVersion} -> ${k8sTargetVersion}`

export const noCluster = () => new Failure('failed', 'this host has no cluster')

/**
 * Writes a kubeconfig: as a document with `--output`, otherwise as it is into a file with mode 0600.
 * @param file - is standard output
 * @throws Failure where the file cannot be written
 */
export async function writeKubeconfigTo(output: Output, kubeconfig: string, file = '-'): Promise<void> {
  if (output.format !== 'table') {
    await output.show({ kubeconfig }, () => '')
    return
  }
  if (file === '-') {
    output.write(Buffer.from(kubeconfig))
    return
  }
  await placeFile({
    path: file,
    mode: 0o600,
    onBegin: removeOnSignal(),
    async write(handle) {
      await handle.writeFile(kubeconfig)
      await handle.sync()
    },
  }).catch((error: unknown) => {
    throw new Failure('failed', `${file} could not be written: ${(error as Error).message}`, { cause: error })
  })
  output.note(`The kubeconfig is in ${file}.`)
}

/** The fields of an event that are shown. */
export type ShownEvent = Pick<Event, 'reason' | 'message' | 'severity' | 'step'> & {
  readonly metadata: Pick<Event['metadata'], 'creationTimestamp'>
}

/** Shows events as they come: a line each where it fits, and on a terminal a line below with the steps that run. */
interface EventScreen {
  show(event: ShownEvent): Promise<void>
  /** Shows beside the running steps how long the revision has until it is taken back; undefined: it has no limit. */
  setDeadline(deadline: ClusterDeadline | undefined): void
  /** Removes the line of the running steps. */
  end(): void
}

interface Running {
  readonly title: string
  readonly since: number
}

const drawnEveryMs = 1_000
const beginReasons = ['StepStarted', 'StepRetried']
const endReasons = ['StepDone', 'StepFailed', 'StepStopped', 'StepCutOff']

/** @param terminal where the line of the running steps is drawn */
export function createEventScreen(
  output: Output,
  terminal: MaybeTerminal,
  now: () => number = () => Date.now(),
): EventScreen {
  const line = createStatusLine(terminal)
  const running = new Map<string, Running>()
  // A deadline may be read when the line is gone.
  let isOver = false
  let limit: { readonly until: number; readonly action: ClusterDeadline['action'] } | undefined
  const limitText = () => {
    if (!limit) return []
    const left = span(Math.max(0, limit.until - now()) / 1_000)
    return [limit.action === 'takenBack' ? `taken back in ${left}` : `an operator is needed in ${left}`]
  }
  const draw = () => {
    if (output.format !== 'table' || isOver) return
    const steps = [...running.values()].map(
      ({ title, since }) => `${title}: ${span(Math.max(0, now() - since) / 1_000)}`,
    )
    const shown = [...steps, ...limitText()]
    if (shown.length === 0) line.clear()
    else line.draw(shown.join(', '))
  }
  const timer = setInterval(draw, drawnEveryMs).unref()

  return {
    async show(event) {
      const { step = '', reason, message, metadata } = event
      const at = Date.parse(metadata.creationTimestamp)
      const started = running.get(step)
      if (beginReasons.includes(reason)) running.set(step, { title: oneLine(message), since: at })
      if (endReasons.includes(reason)) running.delete(step)
      line.clear()
      if (output.format === 'json') output.write(Buffer.from(`${JSON.stringify(event)}\n`))
      else if (output.format === 'yaml') {
        output.write(Buffer.from('---\n'))
        await output.show(event, () => '')
      } else
        output.write(
          Buffer.from(`${renderEvent(event, output.paper.columns, started && at - started.since)}\n`),
        )
      draw()
    },
    setDeadline(deadline) {
      limit = deadline && { until: now() + deadline.leftSeconds * 1_000, action: deadline.action }
      draw()
    },
    end() {
      isOver = true
      clearInterval(timer)
      line.clear()
    },
  }
}

const reasonWidth = 24

/**
 * One line: time, reason, message, and duration of a step. Where that is wider than the terminal, the message is below.
 * @param columns of the terminal; Infinity where there is no terminal
 * @param tookMs undefined where it is not known
 */
export function renderEvent(
  { metadata, reason, message, severity }: ShownEvent,
  columns: number,
  tookMs?: number,
): string {
  const mark = severity === 'Normal' ? ' ' : '!'
  const took = reason === 'StepDone' && tookMs !== undefined ? ` (${span(tookMs / 1_000)})` : ''
  const time = `${moment(metadata.creationTimestamp)} ${mark}`
  const name = oneLine(reason)
  const text = `${oneLine(message)}${took}`
  const line = `${time} ${name.padEnd(reasonWidth)} ${text}`
  if (displayWidth(line) <= columns) return line
  const head = `${time} ${name}`
  const heads = displayWidth(head) <= columns ? [head] : [time.trimEnd(), ...wrapBelow(name, columns)]
  return [...heads, ...wrapBelow(text, columns)].join('\n')
}
