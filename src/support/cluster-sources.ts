import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { maskShapes } from '../base/mask.ts'
import { escapeEach, escapeInvisible } from '../base/printable.ts'
import { clusterPaths, kubernetesFiles, units } from '../cluster/engine/paths.ts'
import type { SensitiveValues } from '../cluster/sensitive-values.ts'
import { createHideOf } from '../definition/slots/secrets.ts'
import { runFiles, type RunExit, type RunOrder } from '../system/lasting/run-files.ts'
import { readLastLines } from '../system/regular-file.ts'
import type { CommandRunner } from '../system/runner.ts'
import type { Source } from './collect.ts'
import { readJournal, runWhole } from './outputs.ts'

// Kubelet, containerd, steps and pods quote values of variables. So each text is masked with the sensitive values of the cluster before it is
// cut, since half of a value is no longer found.

export interface ClusterSourcesOptions {
  readonly runner: CommandRunner
  readonly stateDirectory: string
  /** Undefined without a cluster; an error where the values are not known: what may have them is left out then. */
  readonly sensitive: SensitiveValues | Error | undefined
  /** Folder of the logs of containers. */
  readonly podLogs?: string
}

const journalLines = [5_000, 500] as const
const journalBytes = 4_194_304
const listBytes = 16_777_216
const eventBytes = 524_288
const stepBytes = 65_536
const allStepBytes = 2_097_152
const kubectlMs = 20_000
// All lines of all containers.
const allLogsMs = 60_000
const mostContainers = 40
const lastLines = 20
const lastBytes = 4_096
// A container runtime writes lines of 16 KiB.
const logBytes = 393_216

/** The sources that are of the cluster of this host; none without a cluster. */
export function listClusterSources(options: ClusterSourcesOptions): Source[] {
  const { runner, stateDirectory, sensitive, podLogs = '/var/log/pods' } = options
  if (sensitive === undefined) return []
  const paths = clusterPaths(stateDirectory)
  const kubectl = (args: readonly string[], timeoutMs = kubectlMs, maxOutputBytes = listBytes) =>
    runWhole(
      runner,
      join(paths.programs, 'kubectl', 'current', 'kubectl'),
      // Without a folder for its cache it leaves nothing on the host.
      [
        ...[`--kubeconfig=${kubernetesFiles.adminConfig}`, '--request-timeout=10s'],
        ...['--cache-dir=/dev/null/none', ...args],
      ],
      { timeoutMs, maxOutputBytes },
    )
  const source = (name: string, from: string, read: (known: SensitiveValues) => Promise<string>): Source => ({
    name,
    from,
    async read() {
      if (sensitive instanceof Error)
        throw new Error(
          `left out, since the sensitive values of the cluster are not known: ${sensitive.message}`,
        )
      return read(sensitive)
    },
  })
  const journal = (name: string, unit: string) =>
    source(name, `journalctl --unit=${unit}`, async ({ since, values }) =>
      hideIn(
        await readJournal(runner, {
          units: [unit],
          lines: journalLines,
          maxOutputBytes: journalBytes,
          // Rounded up: lines of a cluster before this one are left out.
          args: [`--since=@${Math.ceil(since / 1_000)}`],
        }),
        values,
      ),
    )
  return [
    journal('kubelet.txt', units.kubelet),
    journal('containerd.txt', units.containerd),
    source('steps.txt', join(paths.folder, 'steps'), async ({ values }) =>
      readSteps(join(paths.folder, 'steps'), values),
    ),
    source('pods.txt', 'kubectl get pods, kubectl logs', async ({ values }) => {
      try {
        const list = JSON.parse(
          await kubectl(['get', 'pods', '--all-namespaces', '--output=json']),
        ) as PodList
        return await describePods(list, values, (args, timeoutMs) => kubectl(args, timeoutMs, logBytes))
      } catch (error) {
        return `The API server could not be asked: ${maskShapes(hideIn((error as Error).message, values))}\n\n${await readPodLogs(podLogs, values)}`
      }
    }),
    source('kubernetes-events.txt', 'kubectl get events', async ({ values }) =>
      lastOf(
        hideIn(
          await kubectl([
            ...['get', 'events', '--all-namespaces', '--sort-by=.metadata.creationTimestamp'],
            '--output=custom-columns=TIME:.lastTimestamp,CREATED:.metadata.creationTimestamp,TYPE:.type,REASON:.reason,NAMESPACE:.metadata.namespace,OBJECT:.involvedObject.kind,NAME:.involvedObject.name,COUNT:.count,MESSAGE:.message',
          ]),
          values,
        ),
        eventBytes,
      ),
    ),
  ]
}

// A search for many values in one long text would exceed the work that `createHideOf` does; it masks the rest as a whole then.
const pieceLength = 65_536

/** Masks sensitive values in a text, piece by piece of whole lines. Lines of a value of several lines are masked one by one. */
export function hideIn(text: string, values: readonly string[]): string {
  if (values.length === 0) return text
  const longest = Math.max(...values.map(({ length }) => length))
  const pieces: string[] = []
  for (let from = 0; from < text.length;) {
    // A piece ends at the end of a line, and is larger than every form of a value.
    const end = text.indexOf('\n', from + Math.max(pieceLength, longest * 8))
    const to = end === -1 ? text.length : end + 1
    pieces.push(createHideOf(values)(text.slice(from, to)))
    from = to
  }
  return pieces.join('')
}

/** The end of a text, of whole lines. */
function lastOf(text: string, bytes: number): string {
  const buffer = Buffer.from(text)
  if (buffer.length <= bytes) return text
  const rest = buffer.subarray(buffer.length - bytes).toString()
  return `(${buffer.length - bytes} bytes before are left out)\n${rest.slice(rest.indexOf('\n') + 1)}`
}

/** The output of the steps of the cluster, of the last started one first. */
export async function readSteps(folder: string, values: readonly string[]): Promise<string> {
  const names = await readdir(folder).catch(() => [])
  const runs = await Promise.all(
    names.map(async (name) => {
      const files = runFiles(join(folder, name))
      const read = async <T>(path: string) =>
        JSON.parse(await readFile(path, 'utf8').catch(() => 'null')) as T | null
      return { name, files, order: await read<RunOrder>(files.order), exit: await read<RunExit>(files.exit) }
    }),
  )
  runs.sort((one, other) => (other.order?.startedAt ?? 0) - (one.order?.startedAt ?? 0))
  const parts: string[] = []
  let left = allStepBytes
  for (const { name, files, order, exit } of runs) {
    if (left <= 0) {
      parts.push(`==== ${name}: left out, the file would be too long`)
      continue
    }
    // Twice as much is read as is shown, so that a value at the cut is whole when it is looked for.
    const text = hideIn(await readLastLines(files.output, 2 * stepBytes).catch(() => ''), values)
    const shown = lastOf(text, Math.min(stepBytes, left))
    left -= Buffer.byteLength(shown)
    parts.push(`==== ${hideIn(headOf(name, order, exit), values)}\n${shown}`)
  }
  return parts.length === 0 ? 'No step has left output.\n' : `${parts.join('\n')}\n`
}

function headOf(name: string, order: RunOrder | null, exit: RunExit | null): string {
  const at = (time: number) => new Date(time).toISOString()
  const started = order === null ? '' : `, ${order.args.at(-1) ?? ''}, started ${at(order.startedAt)}`
  if (exit === null) return `${name}${started}, has not ended`
  const end =
    exit.kind === 'exited'
      ? `exit code ${exit.exitCode}`
      : exit.kind === 'killed'
        ? `ended by ${exit.signal}`
        : `not started: ${exit.reason}`
  return `${name}${started}, ended ${at(exit.endedAt)}, ${end}`
}

/** Pods of the API server, as far as they are used. */
interface PodList {
  readonly items: readonly Pod[]
}

interface Pod {
  readonly metadata: { readonly namespace: string; readonly name: string }
  readonly status?: {
    readonly phase?: string
    readonly reason?: string
    readonly message?: string
    readonly startTime?: string
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly reason?: string
      readonly message?: string
      readonly lastTransitionTime?: string
    }[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
    readonly containerStatuses?: readonly ContainerStatus[]
  }
}

/** Of the API server, as far as it is used. */
export interface ContainerStatus {
  readonly name: string
  readonly ready: boolean
  readonly restartCount: number
  readonly state?: Readonly<Record<string, StateOfContainer>>
  readonly lastState?: Readonly<Record<string, StateOfContainer>>
}

interface StateOfContainer {
  readonly reason?: string
  readonly message?: string
  readonly exitCode?: number
  readonly startedAt?: string
  readonly finishedAt?: string
}

/** Whether a container is not ready, or has been restarted; one that has done its work is neither. */
const isInTrouble = ({ ready, restartCount, state }: ContainerStatus): boolean =>
  restartCount > 0 || (!ready && state?.terminated?.exitCode !== 0)

/**
 * Describes all pods, and shows the last lines of the containers that are not ready or were restarted.
 * @param ask runs kubectl
 */
export async function describePods(
  { items }: PodList,
  values: readonly string[],
  ask: (args: readonly string[], timeoutMs: number) => Promise<string>,
): Promise<string> {
  const until = performance.now() + allLogsMs
  const lines = items.flatMap(({ metadata: { namespace, name }, status = {} }) => {
    const conditions = (status.conditions ?? []).filter((each) => each.status !== 'True')
    return [
      words(`${namespace}/${name}`, status.phase, status.reason, status.message, since(status.startTime)),
      ...conditions.map((each) =>
        words(`  ${each.type}=${each.status}`, each.reason, each.message, since(each.lastTransitionTime)),
      ),
      ...containersOf(status).map((each) =>
        words(
          `  container ${each.name}`,
          each.ready ? 'ready' : 'not ready',
          `${each.restartCount} restarts`,
          stateOf(each.state),
          each.lastState && Object.keys(each.lastState).length > 0
            ? `before: ${stateOf(each.lastState)}`
            : '',
        ),
      ),
    ]
  })
  const logs: string[] = []
  const wanted = items.flatMap(({ metadata: { namespace, name }, status = {} }) =>
    containersOf(status)
      .filter(isInTrouble)
      .flatMap(({ name: container, restartCount }) =>
        (restartCount > 0 ? [false, true] : [false]).map((isPrevious) => ({
          namespace,
          name,
          container,
          isPrevious,
        })),
      ),
  )
  for (const { namespace, name, container, isPrevious } of wanted.slice(0, mostContainers)) {
    const head = `==== ${namespace}/${name} ${container}${isPrevious ? ', before its last start' : ''}`
    const leftMs = Math.round(until - performance.now())
    if (leftMs <= 0) {
      logs.push(`${head}: left out, the logs before took too long`)
      continue
    }
    const args = [
      ...['logs', `--namespace=${namespace}`, name, `--container=${container}`, '--timestamps'],
      ...[`--tail=${lastLines}`, ...(isPrevious ? ['--previous'] : [])],
    ]
    const text = await ask(args, Math.min(kubectlMs, leftMs)).catch(
      (error: unknown) => (error as Error).message,
    )
    logs.push(`${head}\n${lastOf(escapeControls(maskShapes(hideIn(text, values))), lastBytes)}`)
  }
  if (wanted.length > mostContainers)
    logs.push(`==== ${wanted.length - mostContainers} more containers are left out`)
  return `${hideIn([...lines, ''].join('\n'), values)}\n${logs.length === 0 ? 'No container is in trouble.' : logs.join('\n')}\n`
}

/** Lines of containers, safe for the terminal of their reader. */
const escapeControls = (text: string) => escapeEach(text, /[^\P{Cc}\n\t]/gu)

const containersOf = (status: NonNullable<Pod['status']>) => [
  ...(status.initContainerStatuses ?? []),
  ...(status.containerStatuses ?? []),
]

const words = (...parts: readonly (string | undefined)[]) => escapeInvisible(parts.filter(Boolean).join(', '))
const since = (time: string | undefined) => (time === undefined ? '' : `since ${time}`)

function stateOf(state: ContainerStatus['state']): string {
  const [[kind, found] = ['unknown', {}]] = Object.entries(state ?? {})
  return words(
    kind,
    found.reason,
    found.exitCode === undefined ? '' : `exit code ${found.exitCode}`,
    // That of a container that has ended is its own words, and may begin within a secret.
    kind === 'terminated' ? '' : found.message,
    since(found.finishedAt ?? found.startedAt),
  )
}

/** Puts the parts of long lines together, as the kubelet does: `<time> stdout|stderr P|F <text>`, where P is followed by another part. */
const joinParts = (log: string): string => {
  let isOpen = false
  return log
    .split('\n')
    .map((line) => {
      const [, head = '', flag = '', text = line] = /^(\S+ std(?:out|err)) ([PF]) (.*)$/.exec(line) ?? []
      const shown = isOpen || flag === '' ? text : `${head} ${text}`
      isOpen = flag === 'P'
      return isOpen ? shown : `${shown}\n`
    })
    .join('')
}

/** The last lines of all containers of a folder like /var/log/pods, for an API server that does not answer: it may be one of them. */
export async function readPodLogs(folder: string, values: readonly string[]): Promise<string> {
  const list = async (path: string) => (await readdir(path).catch(() => [])).sort()
  const parts: string[] = []
  for (const pod of await list(folder))
    for (const container of await list(join(folder, pod))) {
      if (parts.length >= mostContainers) return `${parts.join('\n')}\n==== more containers are left out\n`
      // `<number of the restart>.log`
      const numbers = (await list(join(folder, pod, container))).flatMap((name) =>
        /^\d+\.log$/.test(name) ? [Number.parseInt(name)] : [],
      )
      if (numbers.length === 0) continue
      const text = await readLastLines(
        join(folder, pod, container, `${Math.max(...numbers)}.log`),
        logBytes,
      ).catch((error: unknown) => (error as Error).message)
      const whole = joinParts(text)
      const lines = hideIn(whole, values).trimEnd().split('\n').slice(-lastLines).join('\n')
      parts.push(`==== ${pod} ${container}\n${lastOf(escapeControls(maskShapes(lines)), lastBytes)}`)
    }
  return parts.length === 0 ? 'No container has left lines.\n' : `${parts.join('\n')}\n`
}
