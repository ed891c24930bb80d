import { maskShapes } from '../../base/mask.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { KubernetesError, type KubernetesClient, type KubernetesObject } from '../../kubernetes/client.ts'
import { conditionOf, fieldAt, isTrue, listAt, textAt } from '../../kubernetes/fields.ts'
import { isDnsLabel, isDnsSubdomain } from '../../kubernetes/names.ts'
import { isRecord } from '../../base/json.ts'
import { clusterErrors } from '../codes.ts'
import { podResource } from '../../kubernetes/paths.ts'
import { troublesOfPod } from '../packs/troubles.ts'
import type { PodLogs } from '../schemas.ts'

/** A pod and what of it is read. */
export interface PodLogsQuestion {
  readonly namespace: string
  readonly pod: string
  /** Absent: the container in trouble, otherwise the first. */
  readonly container?: string
  /** Absent: the instance that crashed, where the container runs again and is not ready. */
  readonly isPrevious?: boolean
}

interface PodLogsOptions {
  /** Undefined where there is no API server that answers. @throws AppError NotFound without a cluster */
  readonly client: () => Pick<KubernetesClient, 'get' | 'logs'> | undefined
  /** Masks the sensitive values of the cluster. */
  readonly hide: () => (text: string) => string
}

const mostLines = 20
const mostBytes = 4_096
// More lines than are shown are read and masked, so that a secret of several lines is known by its beginning. A line of the file of a container has
// at most 16 KiB (max_container_log_line_size of containerd), so that all of them have room in readBytes: what is beyond is cut off at the end.
const readLines = 60
const readBytes = 1_048_576
/** What the kubelet gives for lines where the instance is gone. */
const goneLines = /^unable to retrieve container logs for \S+\s*$/
const longestMs = 10_000

/** Reads the last lines of a container of the cluster when they are asked for; they are kept nowhere. */
export function createPodLogs({ client, hide }: PodLogsOptions) {
  /** @throws AppError BadRequest, NoPodLogs, NotReady, or NotFound without a cluster */
  return async ({ namespace, pod, container, isPrevious }: PodLogsQuestion): Promise<PodLogs> => {
    const kubernetes = client()
    const rule = 'has to be a name of Kubernetes: lower-case letters, digits and hyphens'
    if (!isDnsLabel(namespace)) throw refusedField('namespace', rule)
    if (!isDnsSubdomain(pod)) throw refusedField('name', rule)
    if (container !== undefined && !isDnsLabel(container)) throw refusedField('container', rule)
    if (!kubernetes) throw silent('it does not answer')
    const signal = AbortSignal.timeout(longestMs)
    try {
      const object = await kubernetes.get(podResource, { namespace, name: pod }, signal)
      if (!object) throw noLogs(`the cluster has no pod ${namespace}/${pod}`)
      const chosen = container ?? containerOf(object)
      const status = statusOf(object, chosen)
      if (!status && !declares(object, chosen))
        throw noLogs(
          `the pod ${namespace}/${pod} has no container ${chosen}; it has ${containersOf(object).join(', ')}`,
        )
      const isBefore = isPrevious ?? hasCrashed(object, status)
      const text = await kubernetes.logs(
        { namespace, name: pod },
        {
          container: chosen,
          isPrevious: isBefore,
          tailLines: readLines,
          limitBytes: readBytes,
          signal,
        },
      )
      if (goneLines.test(text))
        throw noLogs(`the lines of the container ${chosen} before its last start are gone`)
      return { namespace, pod, container: chosen, isPrevious: isBefore, lines: lastLines(text, hide()) }
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error
      // 400: the container has not started, or there was no instance before.
      if (error.status === 400 || error.status === 404) throw noLogs(hide()(error.message))
      throw silent(hide()(error.message))
    }
  }
}

const noLogs = (message: string) => new AppError(clusterErrors.NoPodLogs, message)
const silent = (message: string) =>
  new AppError(generalErrors.NotReady, `the API server of the cluster gave no lines: ${message}`)

/** The last lines of a text, masked before they are cut, since a part of a secret would not be known again. */
function lastLines(text: string, hide: (text: string) => string): string[] {
  const lines = maskShapes(hide(text)).replace(/\n$/, '').split('\n').slice(-mostLines)
  const last: string[] = []
  let left = mostBytes
  for (const line of lines.toReversed()) {
    const bytes = Buffer.from(line)
    if (left <= 0) break
    // The end of a line says more than its beginning where it is too long; a cut character is left out.
    const kept =
      bytes.length <= left
        ? line
        : `…${bytes
            .subarray(-left)
            .toString()
            .replace(/^\uFFFD+/, '')}`
    last.unshift(kept)
    left -= bytes.length + 1
  }
  return last.length === 1 && last[0] === '' ? [] : last
}

const lists = ['initContainers', 'containers'] as const

const containersOf = (pod: KubernetesObject): readonly string[] =>
  lists.flatMap((list) => listAt(pod, ['spec', list]).map((each) => textAt(each, ['name'])))

const declares = (pod: KubernetesObject, name: string) => containersOf(pod).includes(name)

/** The container in trouble; otherwise the first that is no init container. */
const containerOf = (pod: KubernetesObject): string =>
  troublesOfPod(pod).find(({ container }) => container !== undefined)?.container ??
  notReady(pod) ??
  textAt(listAt(pod, ['spec', 'containers'])[0], ['name'])

const notReady = (pod: KubernetesObject): string | undefined => {
  const found = listAt(pod, ['status', 'containerStatuses']).find(({ ready }) => ready === false)
  return found && textAt(found, ['name'])
}

const statusOf = (pod: KubernetesObject, name: string) =>
  ['initContainerStatuses', 'containerStatuses']
    .flatMap((list) => listAt(pod, ['status', list]))
    .find((each) => each.name === name)

/** Whether a container runs again after a crash; of one that does not run, Kubernetes gives the lines of the instance that has ended. */
const hasCrashed = (pod: KubernetesObject, status: Readonly<Record<string, unknown>> | undefined): boolean =>
  isRecord(fieldAt(status, ['state', 'running'])) &&
  isRecord(fieldAt(status, ['lastState', 'terminated'])) &&
  !isTrue(conditionOf(pod, 'Ready')?.status ?? '')
