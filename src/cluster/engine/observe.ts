import type { KubernetesClient, KubernetesObject } from '../../kubernetes/client.ts'
import { nodeResource } from '../../kubernetes/paths.ts'
import { nameOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { readiness } from '../../kubernetes/readiness.ts'
import { troublesOfObject } from '../packs/read-troubles.ts'
import { textOfTrouble } from '../packs/troubles.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import type { UnitObserved, EngineObserved, NodeObserved, Trouble } from '../loop/observed.ts'
import { watchFolders } from '../../system/folder-watch.ts'
import type { Logger } from '../../system/log.ts'
import { units, kubernetesFiles, unitFolder, type ClusterPaths } from './paths.ts'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { conditionsOf, isTrue } from '../../kubernetes/fields.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { type ReadCertificates, noCertificates, stateOf, type CertificateState } from './certificates.ts'
import { readRenewal } from './renew.ts'
import { readInitialisation, readNote, readChange, readVersion, type ChangeNote } from './notes.ts'
import { isNameFixed, unfixedName } from './node-name.ts'
import type { Programs } from './programs.ts'
import { configurationDigest, isConfigured } from './configured.ts'
import type { RegistryFiles } from './containerd.ts'

const namespace = 'kube-system'
const apps = { group: 'apps', version: 'v1', isNamespaced: true }

/** Addons of kubeadm beside the control plane, which pods need as much; `kubeadm init phase addon`. */
const addons = [
  {
    resource: { ...apps, plural: 'deployments', kind: 'Deployment' },
    name: 'coredns',
    setting: 'hasCoreDns' as const,
  },
  {
    resource: { ...apps, plural: 'daemonsets', kind: 'DaemonSet' },
    name: 'kube-proxy',
    setting: 'hasKubeProxy' as const,
  },
] as const

type Addon = (typeof addons)[number]

/** The same as objects, to be watched. */
export const addonObjects: readonly InventoryEntry[] = addons.map(({ resource: { kind }, name }) => ({
  apiVersion: 'apps/v1',
  kind,
  namespace,
  name,
}))

interface AddonObserved {
  /** Its problem, one line; empty where it runs. */
  readonly text: string
  readonly troubles: readonly Trouble[]
}

const runs: AddonObserved = { text: '', troubles: [] }

/**
 * Observes whether CoreDNS and kube-proxy run, where kubeadm installs them.
 * @param now milliseconds since 1970
 * @returns the failing ones with the reasons; empty if both run
 * @throws KubernetesError where the API server does not answer
 */
async function observeAddons(
  client: Pick<KubernetesClient, 'get' | 'list'>,
  { config }: Pick<DesiredState['kubernetes'], 'config'>,
  now: number,
  signal: AbortSignal,
): Promise<Pick<EngineObserved, 'addonTrouble' | 'troubles'>> {
  const found = await Promise.all(addons.map((addon) => lookAt(client, addon, config, now, signal)))
  const text = found.flatMap((each) => (each.text === '' ? [] : [each.text])).join('; ')
  const troubles = found.flatMap((each) => each.troubles)
  return {
    ...(text === '' ? {} : { addonTrouble: text }),
    ...(troubles.length === 0 ? {} : { troubles }),
  }
}

async function lookAt(
  client: Pick<KubernetesClient, 'get' | 'list'>,
  { resource, name, setting }: Addon,
  config: string,
  now: number,
  signal: AbortSignal,
): Promise<AddonObserved> {
  const object = await client.get(resource, { namespace, name }, signal)
  const shown = nameOf({ apiVersion: 'apps/v1', kind: resource.kind, namespace, name })
  if (!object) {
    // Only asked where it is missing, as where a pack brings another one: an observation does not need yaml.
    const { kubernetesSettings } = await import('../host/kubernetes-settings.ts')
    return kubernetesSettings(config)[setting] ? { ...runs, text: `${shown} is missing` } : runs
  }
  const { status, message } = readiness(object, now)
  if (status === 'Current') return runs
  const all = await troublesOfObject(client, object, signal)
  const [first] = all
  return {
    text: `${shown}: ${message}${first === undefined ? '' : `; ${textOfTrouble(first)}`}`,
    troubles: all.filter((each) => !isOfStart(each, now)),
  }
}

// Each start of a cluster has them for a moment: the network comes after these pods, and CoreDNS is ready only after its first answers.
const ofStarts: readonly Trouble['reason'][] = ['ProbeFailing', 'Sandbox', 'VolumeMount', 'NotReady']
const startMs = 20_000

const isOfStart = ({ reason, sinceTimestamp = '' }: Trouble, now: number) =>
  ofStarts.includes(reason) && now - Date.parse(sinceTimestamp) < startMs

/**
 * Parses `systemctl show --property=Id,LoadState,ActiveState UNIT…`: a block of lines for each unit.
 * @returns the state of a unit by its name
 */
export function parseUnitStates(output: string): (unit: string) => UnitObserved {
  const states = new Map<string, UnitObserved>()
  for (const block of output.split('\n\n')) {
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(block)?.[1] ?? ''
    const isThere = value('LoadState') === 'loaded'
    states.set(value('Id'), isThere ? (value('ActiveState') === 'active' ? 'running' : 'stopped') : 'absent')
  }
  return (unit) => states.get(unit) ?? 'absent'
}

interface UnitWatchOptions {
  /** A unit of the engine was started, has ended, or was started again. */
  readonly onChange: () => void
  readonly log: Logger
  /** Folder in which systemd keeps a link `invocation:<unit>` for each unit that runs. */
  readonly folder?: string
}

const names = new RegExp(`^invocation:(${Object.values(units).join('|').replaceAll('.', '\\.')})$`)

/**
 * Watches the units of the engine by inotify, since a minimal host has no bus.
 * @returns a function that ends it
 */
export function watchUnits({ onChange, log, folder = '/run/systemd/units' }: UnitWatchOptions): () => void {
  return watchFolders({ folders: new Map([[folder, names]]), onChange, log }).stop
}

interface ObserverOptions {
  readonly paths: ClusterPaths
  readonly runner: CommandRunner
  readonly client: Pick<KubernetesClient, 'get' | 'list'>
  readonly registryFiles: () => RegistryFiles
  readonly programs: Pick<Programs, 'hasCurrent'>
  /** Digest of the input of the preparation. */
  readonly digestOf: (desired: DesiredState) => string
  readonly certificates: ReadCertificates
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Kubeconfig of the administrator, by default kubeadm's. */
  readonly adminConfig?: string
  /** Unit of the kubelet, by default the host's. */
  readonly kubeletUnit?: string
  /** Arguments that kubeadm has written for the kubelet, by default the host's. */
  readonly kubeletFlags?: string
}

const timeoutMs = 20_000
const usualUnit = join(unitFolder, units.kubelet)
const damagedInitialisation =
  'the control plane is taken to be set up, and is neither set up again nor cleared; if its API server does not answer, delete the cluster and create it again'
const damagedCniRecord =
  'what was in /opt/cni/bin before the cluster is known only from the record of the host, and a deletion goes by that'
const damagedChange =
  'it is unknown how far a change of the version of Kubernetes was; delete the file where Kubernetes runs'
const answerMs = 5_000

/** Observes units, files and the API server; reads only. */
export function createObserver(options: ObserverOptions) {
  const { paths, runner, client, programs } = options

  async function isPrepared(desired: DesiredState): Promise<boolean> {
    const noted = await readFile(paths.prepared, 'utf8').catch(() => undefined)
    if (noted !== JSON.stringify({ digest: options.digestOf(desired) })) return false
    return (await programs.hasCurrent('kubelet')) && hasRegistryFiles()
  }
  /** The password of the registry and the certificate of the host change. While the registry has a problem of its own, old files stay. */
  async function hasRegistryFiles(): Promise<boolean> {
    for (const [path, text] of options.registryFiles().files)
      if ((await readFile(path, 'utf8').catch(() => undefined)) !== text) return false
    return true
  }
  async function controlPlane(uid: string): Promise<EngineObserved['controlPlane']> {
    const noted = await readInitialisation(paths)
    if (!noted) return 'absent'
    // Neither set up again nor cleared: it may be a running cluster.
    if (noted === 'damaged') return 'complete'
    if (noted.uid !== uid || noted.state === 'begun') return 'partial'
    // The action that has initialised it has something left to do, and nothing is to be cleared.
    return noted.state === 'done' ? 'complete' : 'absent'
  }
  /** Unreadable notes of the engine on this host, with the consequences. */
  async function damaged(): Promise<readonly string[]> {
    const [initialisation, cni, change] = await Promise.all([
      readInitialisation(paths),
      readNote(paths.cniRecord),
      readChange(paths),
    ])
    return [
      ...(initialisation === 'damaged'
        ? [`${paths.initialisation} cannot be read; ${damagedInitialisation}`]
        : []),
      ...(change === 'damaged' ? [`${paths.change} cannot be read; ${damagedChange}`] : []),
      ...(cni === 'damaged' ? [`${paths.cniRecord} cannot be read; ${damagedCniRecord}`] : []),
    ]
  }
  /** One request gives both: whether the API server works, with its database, and the state of the node. */
  async function api(
    { node: { name }, kubernetes }: DesiredState,
    signal: AbortSignal,
  ): Promise<Pick<EngineObserved, 'api' | 'node' | 'addonTrouble' | 'troubles'>> {
    if (!existsSync(options.adminConfig ?? kubernetesFiles.adminConfig)) return { api: 'absent' }
    const limited = AbortSignal.any([signal, AbortSignal.timeout(answerMs)])
    try {
      const object = await client.get(nodeResource, { name }, limited)
      // A short silence of the API server is no fault of them.
      const ofAddons = await observeAddons(client, kubernetes, options.now(), limited).catch(() => ({}))
      return {
        api: 'answers',
        ...(object ? { node: nodeOf(object) } : {}),
        ...ofAddons,
      }
    } catch {
      signal.throwIfAborted()
      return { api: 'silent' }
    }
  }

  /** At rest the state of each file is asked for, and none is read. */
  async function certificates(plane: EngineObserved['controlPlane']): Promise<CertificateState> {
    if (plane !== 'complete') return stateOf(noCertificates, options.now())
    const [seen, started] = await Promise.all([options.certificates(), readRenewal(paths)])
    const state = stateOf(seen, options.now())
    return started ? { ...state, isRenewalDue: true, isRenewalOverdue: true } : state
  }

  async function kubernetesOf(desired: DesiredState, signal: AbortSignal) {
    const { uid, kubernetes } = desired
    const plane = await controlPlane(uid)
    const [noted, version] = await Promise.all([readChange(paths), readVersion(paths)])
    return {
      controlPlane: plane,
      // No note: the desired version came with the initialisation.
      version: plane === 'absent' ? '' : (version ?? kubernetes.version),
      ...(plane === 'complete' && noted !== undefined && noted !== 'damaged'
        ? { change: changeOf(noted) }
        : {}),
      isConfigured: plane !== 'complete' || (await isConfigured(paths, configurationDigest(desired))),
      ...(await certificates(plane)),
      ...(plane === 'complete' && !(await isNameFixed({ unit: options.kubeletUnit ?? usualUnit }))
        ? {
            followsHostName: await unfixedName(
              options.kubeletFlags === undefined ? undefined : { flags: options.kubeletFlags },
            ),
          }
        : {}),
      ...(plane === 'complete' ? await api(desired, signal) : ({ api: 'absent' } as const)),
    }
  }

  return async (desired: DesiredState, signal: AbortSignal): Promise<EngineObserved> => {
    const args = ['show', '--property=Id,LoadState,ActiveState', ...Object.values(units)]
    const [shown, prepared, unread, ofKubernetes] = await Promise.all([
      runner.run('systemctl', args, { timeoutMs, signal }),
      isPrepared(desired),
      damaged(),
      kubernetesOf(desired, signal),
    ])
    const states = parseUnitStates(shown.stdout)
    return {
      isPresent:
        [paths.programs, paths.kubeadm, paths.containerd].some((path) => existsSync(path)) ||
        existsSync(join(unitFolder, units.containerd)),
      isPrepared: prepared,
      damaged: unread,
      containerd: states(units.containerd),
      kubelet: states(units.kubelet),
      ...ofKubernetes,
    }
  }
}

const changeOf = ({ from, to, generation, phase }: ChangeNote) => ({ from, to, generation, phase })

function nodeOf(object: KubernetesObject): NodeObserved {
  const ready = conditionsOf(object).find(({ type }) => type === 'Ready')
  return {
    name: object.metadata.name,
    isReady: ready !== undefined && isTrue(ready.status),
    message: ready?.message || 'the kubelet has not reported yet',
  }
}
