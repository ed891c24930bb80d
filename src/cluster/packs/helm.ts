import type { KubernetesObject } from '../../kubernetes/client.ts'
import { entryOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { createBoundedRunner } from '../../system/bounded-memory.ts'
import { CommandFailed, type CommandRunner, type CommandStreamer } from '../../system/runner.ts'
import { StepFailed } from '../loop/step.ts'

/** A revision of a release, as `helm history --output json` gives it. */
export interface Revision {
  readonly revision: number
  /** For example `deployed`, `failed`, `superseded`, `pending-install`, `uninstalling`. */
  readonly status: string
  /** Description by helm, for example `Rollback to 2`, or as set by its caller. */
  readonly description?: string
}

/** Cure of a release that an interrupted helm left blocked. */
export type Cure = { readonly kind: 'uninstall' } | { readonly kind: 'rollback'; readonly revision: number }

/** Whether the first installation of a release has failed, and none of its upgrades since has succeeded. */
export const wasNeverDeployed = (history: readonly Revision[]): boolean =>
  history.some(({ revision }) => revision === 1) &&
  history.every(({ status }) => status === 'failed' || status.startsWith('pending-'))

/**
 * Cure before helm takes a release again: it refuses one whose last revision is pending, and cannot say whether the helm that made it so
 * still lives. Only one helm of this project runs at a time.
 * @param history in any order; empty where there is no release
 * @returns undefined where helm takes the release as it is, also one that failed
 */
export function cureOf(history: readonly Revision[]): Cure | undefined {
  const newestFirst = history.toSorted((a, b) => b.revision - a.revision)
  const [last, ...before] = newestFirst
  if (last?.status === 'pending-install' || last?.status === 'uninstalling') return { kind: 'uninstall' }
  if (last?.status !== 'pending-upgrade' && last?.status !== 'pending-rollback') return undefined
  // helm sets the former revision to superseded before it sets the new one to deployed, and may have been cut off in between. Where
  // nothing was ever deployed, a rollback to the last failed one unblocks the release, and its data stays.
  for (const status of ['deployed', 'superseded', 'failed']) {
    const found = before.find((revision) => revision.status === status)
    if (found) return { kind: 'rollback', revision: found.revision }
  }
  return { kind: 'uninstall' }
}

/** Reads `helm history --output json`. */
const readHistory = (output: string): readonly Revision[] => JSON.parse(output) as Revision[]

/**
 * Reads the objects in `helm status --show-resources --output json`, in which each kind has a list of its objects as they are in the
 * cluster. Pods of workloads are beside them as lists with the key `v1/Pod(related)`; they are left out.
 */
export function readResources(output: string): readonly InventoryEntry[] {
  const { info } = JSON.parse(output) as {
    info: { resources?: Readonly<Record<string, readonly KubernetesObject[]>> }
  }
  return Object.entries(info.resources ?? {})
    .filter(([kind]) => !kind.endsWith('(related)'))
    .flatMap(([, objects]) => objects)
    .map(entryOf)
}

interface Hook {
  readonly events: readonly string[]
  readonly last_run?: { readonly phase?: string }
}

/**
 * Whether hooks that run only with an installation, not with an upgrade, have not succeeded.
 * @param output of `helm status --output json` for the revision of the installation
 */
function missesInstallHooks(output: string): boolean {
  const { hooks } = JSON.parse(output) as { hooks?: readonly Hook[] | null }
  const isMissed = ({ events, last_run: last }: Hook) =>
    last?.phase !== 'Succeeded' &&
    ['pre', 'post'].some((when) => events.includes(`${when}-install`) && !events.includes(`${when}-upgrade`))
  return (hooks ?? []).some(isMissed)
}

// For example: ready.go:303: 2026-11-23 11:18:31.765146494 +0000 UTC m=+2.189066634 [debug] Deployment is not ready: shop/web. 0 out …
const readyLine = /^ready\.go:\d+: .*? \[debug\] (.+)$/

/** Wait of helm, from a line of its standard error with `--debug`; undefined for other lines. */
export const waitingOf = (line: string): string | undefined => readyLine.exec(line)?.[1]

const debugLine = /^\w+\.go:\d+: .*? \[debug\]/

/**
 * Failure of helm, from the lines of its standard error.
 * @returns one line: the text after `Error:`, without the lines of `--debug`; whole, since values in it are masked only by the daemon
 */
export function reasonOf(lines: readonly string[]): string {
  const begin = lines.findLastIndex((line) => line.startsWith('Error: '))
  const rest = lines.slice(Math.max(begin, 0))
  const end = rest.findIndex((line) => debugLine.test(line))
  const reason = (end < 0 ? rest : rest.slice(0, end))
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ')
    .replace(/^Error: /, '')
  return reason || 'it gave no reason'
}

/** The program helm for one release. Every method throws StepFailed with a reason for operators. */
export interface Helm {
  /** Its revisions; empty where there is no release. */
  history(): Promise<readonly Revision[]>
  /** Whether hooks that an upgrade does not run have not succeeded in its first revision. */
  missesInstallHooks(): Promise<boolean>
  /** Installs or upgrades, and waits for the workloads. */
  upgrade(
    chart: { readonly chart: string; readonly values: string; readonly description: string },
    wait: Wait,
  ): Promise<void>
  /** Goes back to a revision, and waits for the workloads. */
  goBack(revision: number, wait: Wait): Promise<void>
  /** Deletes the release and waits until its objects have gone. @param hasHooks whether its hooks run */
  uninstall(timeoutMs: number, hasHooks?: boolean): Promise<void>
  /** Unblocks the release by a rollback without its hooks, and waits for nothing. */
  rollback(revision: number, timeoutMs: number): Promise<void>
  /** YAML of the objects as the chart wants them, without hooks. */
  manifest(): Promise<string>
  /** The objects of the release that are in the cluster. */
  objects(): Promise<readonly InventoryEntry[]>
}

/** Wait of helm for the workloads of a release. */
interface Wait {
  readonly timeoutMs: number
  /** Called with the object of the wait, each time that it changes. */
  readonly onWaiting: (line: string) => void
}

interface HelmOptions {
  readonly runner: CommandRunner & CommandStreamer
  /** Path of helm. */
  readonly program: string
  readonly kubeconfig: string
  /** Its home, for its cache of the API server; nothing of it has to last. */
  readonly home: string
  readonly release: string
  readonly namespace: string
}

const askMs = 60_000
// helm ends by its own time limit, and then says why.
const graceMs = 60_000
// The objects of a release with their fields and managers, for example of one with large definitions.
const maxObjectsBytes = 268_435_456

/** Runs helm for one release. */
export function createHelm(options: HelmOptions): Helm {
  const { program, kubeconfig, home, release, namespace } = options
  const runner = createBoundedRunner(options.runner)
  const environment = { HOME: home }
  const args = (command: string, ...more: readonly string[]) => [
    ...[command, ...more],
    ...['--kubeconfig', kubeconfig, '--namespace', namespace],
  ]
  const limit = (timeoutMs: number) => ['--timeout', `${Math.ceil(timeoutMs / 1_000)}s`]

  /** Its end is data. @throws StepFailed where it was not run to its end */
  const ask = (command: readonly [string, ...string[]]) =>
    runner
      .run(program, args(...command), { timeoutMs: askMs, maxOutputBytes: maxObjectsBytes, environment })
      .catch((error: unknown) => failed(`the Helm release ${namespace}/${release} cannot be read`, error))
  const askJson = (command: string, ...more: readonly string[]) =>
    ask([command, release, '--output', 'json', ...more])

  /** Runs a command that changes the release. Its standard output may contain secrets, as in the notes of a chart. */
  async function change(
    what: string,
    command: readonly string[],
    timeoutMs: number,
    onLine: (line: string) => void = () => undefined,
  ): Promise<void> {
    const errors: string[] = []
    const failure = `the Helm release ${namespace}/${release} could not be ${what}`
    const { exitCode, signal } = await runner
      .stream(program, command, {
        timeoutMs: timeoutMs + graceMs,
        environment,
        onLine(line, from) {
          if (from !== 'stderr') return
          onLine(line)
          errors.push(line)
          if (errors.length > 1_000) errors.shift()
        },
      })
      .catch((error: unknown) => failed(failure, error))
    if (exitCode === 0) return
    throw new StepFailed(
      `${failure}: ${signal === undefined ? reasonOf(errors) : `helm was ended by ${signal}`}`,
    )
  }

  /** Runs a command that waits for the workloads. */
  async function changeAndWait(
    what: string,
    [command, ...more]: readonly [string, ...string[]],
    { timeoutMs, onWaiting }: Wait,
  ): Promise<void> {
    let waiting = ''
    // helm reports its waits only with --debug, on standard error.
    const flags = ['--wait', ...limit(timeoutMs), '--debug']
    try {
      await change(what, args(command, ...more, ...flags), timeoutMs, (line) => {
        const found = waitingOf(line)
        if (found !== undefined && found !== waiting) onWaiting((waiting = found))
      })
    } catch (error) {
      if (!waiting || !(error instanceof StepFailed)) throw error
      throw new StepFailed(`${error.message}; last: ${waiting}`)
    }
  }

  return {
    async history() {
      const { exitCode, stdout, stderr } = await askJson('history')
      if (exitCode === 0) return readHistory(stdout)
      const reason = reasonOf(stderr.split('\n'))
      if (reason === 'release: not found') return []
      throw new StepFailed(`helm cannot read the release ${namespace}/${release}: ${reason}`)
    },
    async missesInstallHooks() {
      const { exitCode, stdout, stderr } = await askJson('status', '--revision', '1')
      if (exitCode === 0) return missesInstallHooks(stdout)
      throw new StepFailed(
        `helm cannot read the first revision of the release ${namespace}/${release}: ${reasonOf(stderr.split('\n'))}`,
      )
    },
    upgrade: ({ chart, values, description }, wait) =>
      changeAndWait(
        'installed',
        // Without --reset-values, empty values would mean the last revision's.
        [
          ...(['upgrade', release, chart, '--install', '--reset-values', '--values', values] as const),
          ...['--description', description],
        ],
        wait,
      ),
    goBack: (revision, wait) =>
      changeAndWait(`rolled back to revision ${revision}`, ['rollback', release, String(revision)], wait),
    uninstall: (timeoutMs, hasHooks = false) =>
      change(
        'uninstalled',
        args(
          ...(['uninstall', release, '--wait', '--ignore-not-found'] as const),
          ...[...(hasHooks ? [] : ['--no-hooks']), ...limit(timeoutMs)],
        ),
        timeoutMs,
      ),
    rollback: (revision, timeoutMs) =>
      change(
        `rolled back to revision ${revision}`,
        args('rollback', release, String(revision), '--no-hooks', ...limit(timeoutMs)),
        timeoutMs,
      ),
    async manifest() {
      const { exitCode, stdout, stderr } = await ask(['get', 'manifest', release])
      if (exitCode === 0) return stdout
      throw new StepFailed(
        `helm cannot give the manifest of the release ${namespace}/${release}: ${reasonOf(stderr.split('\n'))}`,
      )
    },
    async objects() {
      const { exitCode, stdout, stderr } = await askJson('status', '--show-resources')
      if (exitCode === 0) return readResources(stdout)
      throw new StepFailed(
        `helm cannot list the objects of the release ${namespace}/${release}: ${reasonOf(stderr.split('\n'))}`,
      )
    },
  }
}

function failed(what: string, error: unknown): never {
  if (error instanceof CommandFailed) throw new StepFailed(`${what}: ${error.message}`, { cause: error })
  throw error
}
