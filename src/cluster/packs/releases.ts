import { type Revision, cureOf, wasNeverDeployed, createHelm, type Helm } from './helm.ts'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createKubernetesClient } from '../../kubernetes/create-client.ts'
import { replaceFile } from '../../system/files.ts'
import { type CommandRunner, type CommandStreamer, createRunner } from '../../system/runner.ts'
import { type StepAction, StepFailed, type StepActions } from '../loop/step.ts'
import { keyOf } from '../../kubernetes/inventory.ts'
import { hasReadiness, webhookIn } from './availability.ts'
import { observeObject, readRelease } from './objects.ts'

/** Way of a release to a chart with its values. */
export type Way =
  /** It was deployed so last. */
  | { readonly kind: 'keep' }
  /** It was deployed so before, and helm still has that revision. */
  | { readonly kind: 'rollback'; readonly revision: number }
  | { readonly kind: 'upgrade' }

const mark = 'edgehostd '

/** Description of the revisions of a chart with its values, by which they are known again. @param digest of `chartDigest` */
export const descriptionOf = (digest: string): string => mark + digest

/**
 * Way of a release to a chart with its values, by its history of helm. helm keeps it in the cluster, so it is right also after the cluster
 * was restored.
 * @param history in any order, with the descriptions; after a cure
 */
export function wayTo(digest: string, history: readonly Revision[]): Way {
  if (digest === '') return { kind: 'upgrade' }
  const newestFirst = history.toSorted((one, other) => other.revision - one.revision)
  const deployed = newestFirst.filter(
    (each) =>
      (each.status === 'deployed' || each.status === 'superseded') && digestOf(each, history) === digest,
  )
  const [last] = newestFirst
  const [found] = deployed
  if (!last || !found) return { kind: 'upgrade' }
  return last === found && last.status === 'deployed'
    ? { kind: 'keep' }
    : { kind: 'rollback', revision: found.revision }
}

/** The digest of a revision; of one that helm has rolled back to another, the other's. */
function digestOf(
  { revision, description = '' }: Revision,
  history: readonly Revision[],
): string | undefined {
  if (description.startsWith(mark)) return description.slice(mark.length)
  const to = Number(/^Rollback to (\d+)$/.exec(description)?.[1])
  // One that is gone from the history is not known any more.
  const target = to < revision ? history.find((each) => each.revision === to) : undefined
  return target && digestOf(target, history)
}

/** Order of the action `helm`; all paths are absolute. */
export interface ReleaseOrder {
  /** helm itself. */
  readonly program: string
  readonly kubeconfig: string
  readonly release: string
  readonly namespace: string
  /** The chart archive. */
  readonly chart: string
  /** YAML with the values. */
  readonly values: string
  /** Of the chart and its values; empty where it is not known, and then it is installed anew. */
  readonly digest: string
  /** A folder of its own, made and removed by the action. */
  readonly home: string
  /** File that receives the objects of the release, `InventoryEntry[]` as JSON. */
  readonly objects: string
  /** File that receives the objects as the chart wants them: JSON, one object a line. */
  readonly wanted: string
  /** Longest wait of helm for the workloads. */
  readonly timeoutMs: number
}

/** Time limit of a cure: the deletion of a release waits for its objects. */
export const cureMs = 180_000

const troubleMs = 20_000

/** Prefix of lines that become events. */
export const cureMark = 'cured: '
export const waitMark = 'waits: '

/**
 * The action `helm`: brings a release to a chart with its values, after a cure where an interrupted helm has left it blocked. Where it was
 * deployed so last, nothing is done; where it was so before, it is rolled back.
 */
export const createReleaseAction =
  (runner: CommandRunner & CommandStreamer): StepAction =>
  async (given, print) => {
    const order = given as unknown as ReleaseOrder
    const { release, namespace, home } = order
    await rm(home, { recursive: true, force: true })
    await mkdir(home, { recursive: true, mode: 0o700 })
    const helm = createHelm({ runner, ...order })
    try {
      // Hooks of a release that was never installed whole often need missing objects: a cure leaves them out.
      await cure(helm, `${namespace}/${release}`, print)
      const way = wayTo(order.digest, await helm.history())
      const isKept = way.kind === 'keep' && (await isWhole(helm, order.objects))
      if (isKept) print(`the Helm release ${namespace}/${release} has this chart and these values already`)
      else await bring(helm, order, way, print)
      await mkdir(dirname(order.objects), { recursive: true, mode: 0o700 })
      await replaceFile(order.wanted, await desiredObjects(helm), 0o600)
      await replaceFile(order.objects, JSON.stringify(await helm.objects()), 0o600)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }

/** The objects as the chart wants them, JSON, one object a line. */
async function desiredObjects(helm: Helm): Promise<string> {
  // Only here YAML is read: the start of an action would be slower with it.
  const { readPlain } = await import('../../definition/rules/plain-values.ts')
  const { documents } = readPlain(await helm.manifest())
  return documents.map((document) => `${JSON.stringify(document)}\n`).join('')
}

/** Whether the objects that a release had when it was deployed are still there. */
async function isWhole(helm: Helm, file: string): Promise<boolean> {
  const known = await readRelease(file)
  const found = new Set((await helm.objects()).map(keyOf))
  return known?.every((entry) => found.has(keyOf(entry))) === true
}

/** Brings a release to the chart, and waits for its workloads. */
async function bring(
  helm: Helm,
  order: ReleaseOrder,
  way: Way,
  print: (line: string) => void,
): Promise<void> {
  const wait = { timeoutMs: order.timeoutMs, onWaiting: (line: string) => print(waitMark + line) }
  try {
    if (way.kind === 'rollback') await helm.goBack(way.revision, wait)
    else await helm.upgrade({ ...order, description: descriptionOf(order.digest) }, wait)
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error
    const trouble = await troubleOf(helm, order.kubeconfig, error.message).catch(() => '')
    throw trouble === '' ? error : new StepFailed(error.message + trouble, { cause: error })
  }
}

/**
 * Details that helm leaves out: why the workloads of a release do not run, or whose webhook has refused it.
 * @param message of helm
 * @returns the end of a sentence; empty where there is nothing to say
 */
async function troubleOf(helm: Helm, kubeconfig: string, message: string): Promise<string> {
  const client = createKubernetesClient({ kubeconfig: () => readFile(kubeconfig, 'utf8') })
  try {
    const signal = AbortSignal.timeout(troubleMs)
    const webhook = await webhookIn(client, message, signal)
    if (webhook !== '') return webhook
    for (const entry of await helm.objects()) {
      if (!hasReadiness(entry)) continue
      const trouble = (await observeObject(client, entry, signal)).message
      if (trouble !== '') return `; ${trouble}`
    }
    return ''
  } finally {
    client.close()
  }
}

async function cure(helm: Helm, name: string, print: (line: string) => void): Promise<void> {
  const history = await helm.history()
  if (wasNeverDeployed(history) && (await helm.missesInstallHooks())) {
    await helm.uninstall(cureMs)
    print(
      `${cureMark}the first installation of the Helm release ${name} failed before its hooks were done, which an upgrade would leave out; it was uninstalled`,
    )
    return
  }
  const found = cureOf(history)
  if (found?.kind === 'uninstall') {
    await helm.uninstall(cureMs)
    print(`${cureMark}the Helm release ${name} was interrupted in its first installation; it was uninstalled`)
  }
  if (found?.kind === 'rollback') {
    const { revision } = found
    try {
      await helm.rollback(revision, cureMs)
    } catch (error) {
      // A rollback that fails leaves the release failed, and so open for an upgrade.
      if (!(error instanceof StepFailed) || cureOf(await helm.history())) throw error
      print(error.message)
    }
    print(
      `${cureMark}an upgrade of the Helm release ${name} was interrupted; it was rolled back to revision ${revision}`,
    )
  }
}

/** Order of the action `helm-uninstall`; all paths are absolute. */
export interface UninstallOrder {
  /** helm itself. */
  readonly program: string
  readonly kubeconfig: string
  readonly release: string
  readonly namespace: string
  /** A folder of its own, made and removed by the action. */
  readonly home: string
  /** Files about the release, which go with it. */
  readonly files: readonly string[]
  /** Longest wait of helm until the objects are gone. */
  readonly timeoutMs: number
}

/** The action `helm-uninstall`: deletes a release with its objects; one that is not there is no error. */
export const createUninstallAction =
  (runner: CommandRunner & CommandStreamer): StepAction =>
  async (given, print) => {
    const { home, files, timeoutMs, ...order } = given as unknown as UninstallOrder
    await rm(home, { recursive: true, force: true })
    await mkdir(home, { recursive: true, mode: 0o700 })
    try {
      const helm = createHelm({ runner, home, ...order })
      const history = await helm.history()
      const [last] = history.toSorted((one, other) => other.revision - one.revision)
      if (last) {
        // Its hooks may be why an earlier try did not end, and hooks of a release that never ran often need missing objects.
        const hasHooks = last.status !== 'uninstalling' && !wasNeverDeployed(history)
        if (!hasHooks) print(`the hooks of the Helm release ${order.namespace}/${order.release} are left out`)
        await helm.uninstall(timeoutMs, hasHooks)
      }
      for (const file of files) await rm(file, { force: true })
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }

/** Actions of the packs, for `step.cjs`. */
export const packActions: StepActions = {
  helm: createReleaseAction(createRunner()),
  'helm-uninstall': createUninstallAction(createRunner()),
}
