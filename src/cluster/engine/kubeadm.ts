import { isOlder, kubernetesPacks } from '../desired/version.ts'
import type { EngineObserved } from '../loop/observed.ts'
import { type Step, type StepOrder, StepFailed, type StepCalls, renewalStep } from '../loop/step.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { replaceFile } from '../../system/files.ts'
import type { DesiredKubeadm } from './kubeadm-config.ts'
import { type KubeadmFiles, createKubeadmFiles } from './kubeadm-files.ts'
import { type ClusterPaths, clusterPaths, kubernetesFiles } from './paths.ts'
import { kubernetesPrograms, tools } from '../needs/needs.ts'
import { type Programs, readNextPrograms, createPrograms } from './programs.ts'
import { kubeadmIn } from './run-kubeadm.ts'
import { type RegistryFiles, parseContainerdVersion, registryFilesOf } from './containerd.ts'
import { createHash } from 'node:crypto'
import type { ContentAccess } from '../../content/store/find.ts'
import type { ExternalRegistry } from '../../content/registry/external-registry.ts'
import type { RegistryState } from '../../content/registry/registry.ts'
import type { Logger } from '../../system/log.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { ClusterSettings } from '../config.ts'
import { createCertificateReader } from './certificates.ts'
import type { Engine } from './engine.ts'
import { eventOf } from './step-lines.ts'
import { createObserver, watchUnits } from './observe.ts'
import { configurationDigest } from './configured.ts'
import { nodeNameStep } from './node-name.ts'
import { listCopies } from './upgrade/copy.ts'

/** Makes steps of the engine. */
interface StepMaker {
  action(key: string, title: string, minutes: number, order?: StepOrder): Step
  /** A call of the daemon with the desired cluster for kubeadm. */
  call(key: string, title: string, minutes: number, desired: DesiredState): Step
  /** Steps that prepare the desired version in the place of the running one. */
  prepare(desired: DesiredState): readonly Step[]
  /** The step that applies the desired configuration to the running control plane. */
  reconfigure(desired: DesiredState): Step
}

/**
 * Steps left from the running version of Kubernetes to the desired one, by the notes on the disk. Pure.
 *
 * | noted | desired | steps |
 * |---|---|---|
 * | nothing | newer | all: prepare, check, copy, upgrade, configure, settle |
 * | nothing | older | restore, from a copy that is kept |
 * | copying, copied, upgrading, upgraded | the newer one | the rest of them |
 * | any of them | another one | restore |
 * | restoring | any | restore |
 */
function versionSteps(make: StepMaker, desired: DesiredState, observed: EngineObserved): readonly Step[] {
  const { change, version, isPrepared, isConfigured } = observed
  const { generation, node, kubernetes } = desired
  const restoreTo = (to: string): Step => ({
    ...make.action('kubernetes-restore', `Restore Kubernetes ${to}`, 20, { version: to }),
    isRestoration: true,
  })
  if (!change && isOlder(kubernetes.version, version)) return [restoreTo(kubernetes.version)]
  if (change && (change.phase === 'restoring' || change.to !== kubernetes.version))
    return [restoreTo(change.from)]

  const { from, to } = change ?? { from: version, to: kubernetes.version }
  const order: StepOrder = { from, to, generation: change?.generation ?? generation, node: node.name }
  const action = (key: string, title: string, minutes: number) => make.action(key, title, minutes, order)
  const phase = change?.phase ?? 'none'
  const isUpgraded = phase === 'upgraded'
  return [
    ...(phase === 'none'
      ? [
          make.call('place-next-programs', `Place the programs of Kubernetes ${to}`, 10, desired),
          make.call('write-next-files', `Write the files of kubeadm ${to}`, 2, desired),
          action('pull-next-images', `Pull the images of Kubernetes ${to}`, 30),
          action('kubernetes-check', 'Check the upgrade of Kubernetes', 15),
        ]
      : []),
    ...(phase === 'none' || phase === 'copying'
      ? [action('kubernetes-copy', `Copy Kubernetes ${from} to go back to`, 60)]
      : []),
    ...(isUpgraded ? [] : [action('kubernetes-upgrade', `Upgrade Kubernetes from ${from} to ${to}`, 60)]),
    ...(isUpgraded && isPrepared && isConfigured
      ? []
      : [...make.prepare(desired), make.reconfigure(desired)]),
    action('kubernetes-settle', `Wait until Kubernetes ${to} is good`, 20),
  ]
}

interface EngineCallsOptions {
  readonly paths: ClusterPaths
  readonly programs: Programs
  readonly files: KubeadmFiles
  readonly registryFiles: () => RegistryFiles
  readonly client: Pick<KubernetesClient, 'isReady'>
}

const askEveryMs = 1_000

/** Calls of the daemon itself for the engine: they change the state folder only. */
function createEngineCalls(options: EngineCallsOptions): StepCalls {
  const { paths, programs, files, registryFiles, client } = options
  return {
    async 'place-programs'(order, { onLine }) {
      const { kubernetes } = order as unknown as DesiredKubeadm
      const placed: string[] = []
      for (const name of kubernetesPrograms) placed.push(await programs.use(name, kubernetes.version))
      // Pre-flight asks for helm where a pack needs it; etcdctl is for administrators.
      for (const name of tools)
        if ((await programs.find(name)).kind !== 'missing') placed.push(await programs.use(name))
      onLine(`[programs] ${placed.join(', ')}`)
    },
    async 'write-engine-files'(order, { signal }) {
      const desired = order as unknown as DesiredKubeadm
      const registry = registryFiles()
      if (registry.problem !== undefined) throw new StepFailed(registry.problem)
      const kubeadm = programs.current('kubeadm')
      const config = await files.make(kubeadm, desired, signal).catch(failed)
      const images = await files.images(kubeadm, config, signal).catch(failed)
      const texts = [
        ...registry.files,
        [paths.kubeadmConfig, config] as const,
        [paths.kubernetesImages, JSON.stringify(images)] as const,
      ]
      for (const [path, text] of texts) {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 })
        await replaceFile(path, text, 0o600)
      }
    },
    async 'place-next-programs'(order, { onLine }) {
      const { version } = (order as unknown as DesiredKubeadm).kubernetes
      const folders: Partial<Record<(typeof kubernetesPrograms)[number], string>> = {}
      for (const name of kubernetesPrograms) folders[name] = dirname(await programs.place(name, version))
      await mkdir(paths.next.folder, { recursive: true, mode: 0o700 })
      await replaceFile(paths.next.programs, JSON.stringify({ version, folders }), 0o600)
      onLine(`[programs] ${kubernetesPrograms.map((name) => `${name} ${version}`).join(', ')}`)
    },
    async 'write-next-files'(order, { signal }) {
      const desired = order as unknown as DesiredKubeadm
      const { version } = desired.kubernetes
      const { program } = kubeadmIn((await readNextPrograms(paths, version)).folders)
      const config = await files.make(program, desired, signal).catch(failed)
      await replaceFile(paths.next.kubeadmConfig, config, 0o600)
    },
    async 'wait-for-api'(_order, { signal }) {
      while (!(await client.isReady(signal))) await delay(askEveryMs, undefined, { signal })
    },
  }
}

function failed(error: unknown): never {
  throw new StepFailed(`the configuration of the Kubernetes pack cannot be used: ${(error as Error).message}`)
}

export interface KubeadmEngineOptions {
  readonly stateDirectory: string
  readonly settings: ClusterSettings
  readonly content: Pick<ContentAccess, 'findProgram' | 'programVersions'>
  /** Of this host, as OCI names it. */
  readonly architecture: string
  readonly registry: () => RegistryState
  /** A registry of others that images come from too. */
  readonly externalRegistry: () => ExternalRegistry | undefined
  /** The certificate of this host, PEM. */
  readonly certificate: () => string
  readonly runner: CommandRunner
  /** The client of the API server. */
  readonly client: Pick<KubernetesClient, 'isReady' | 'get' | 'list'>
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Logger
}

/** The engine, and the programs of the cluster, which other parts start too. */
interface KubeadmEngine extends Engine {
  readonly programs: Pick<Programs, 'find' | 'place' | 'current'>
}

/** Reads the kubeconfig of the administrator. @throws the system's error, `ENOENT` while there is none */
export const readAdminKubeconfig = () => readFile(kubernetesFiles.adminConfig, 'utf8')

const minute = 60_000

/** Makes Kubernetes by kubeadm, with a containerd of our own. */
export function createKubeadmEngine(options: KubeadmEngineOptions): KubeadmEngine {
  const { stateDirectory, settings, content, architecture, runner, client, log } = options
  const paths = clusterPaths(stateDirectory)
  const programs = createPrograms({
    folder: paths.programs,
    hostFolder: settings.programs.directory,
    content,
    architecture,
    runner,
  })
  const files = createKubeadmFiles({ folder: paths.folder, runner })
  const registryFiles = () =>
    registryFilesOf(paths, options.registry(), options.certificate(), options.externalRegistry())
  const certificates = createCertificateReader(paths)
  const observer = createObserver({
    paths,
    runner,
    client,
    registryFiles,
    programs,
    digestOf,
    certificates,
    now: options.now,
  })

  const containerdVersion = () =>
    runner.run('containerd', ['--version'], { timeoutMs: 20_000 }).then(
      ({ stdout }) => parseContainerdVersion(stdout),
      () => undefined,
    )

  const action = (key: string, title: string, minutes: number, order: StepOrder = {}): Step => ({
    key,
    title,
    timeoutMs: minutes * minute,
    work: { kind: 'action', action: key, order: { stateDirectory, ...order } },
  })
  const call = (key: string, title: string, minutes: number, order: DesiredKubeadm): Step => ({
    key,
    title,
    timeoutMs: minutes * minute,
    work: { kind: 'call', call: key, order: { ...order } },
  })

  const startContainerd = action('start-containerd', 'Start the container runtime', 5)
  const prepareSteps = (desired: DesiredState): readonly Step[] => {
    const order = desiredOf(desired)
    return [
      call('place-programs', 'Place the programs of Kubernetes', 10, order),
      call('write-engine-files', 'Write the files of kubeadm', 2, order),
      startContainerd,
      action('pull-images', 'Pull the images of Kubernetes', 30, { digest: digestOf(desired) }),
    ]
  }

  const reconfigure = (desired: DesiredState) =>
    action('reconfigure', 'Apply the configuration of Kubernetes', 15, configurationOf(desired))
  const stepMaker: StepMaker = {
    action,
    reconfigure,
    prepare: prepareSteps,
    call: (key, title, minutes, desired) => call(key, title, minutes, desiredOf(desired)),
  }

  return {
    packs: kubernetesPacks,
    programs,
    calls: createEngineCalls({ paths, programs, files, registryFiles, client }),
    async preflight(desired, signal) {
      // Loaded with the first cluster: a start does not need yaml.
      const { createEnginePreflight } = await import('./preflight.ts')
      return createEnginePreflight({ programs, files, registryFiles, containerdVersion })(desired, signal)
    },
    async images(desired, signal) {
      const kubeadm = await programs.place('kubeadm', desired.kubernetes.version)
      return files.images(kubeadm, await files.make(kubeadm, desired, signal), signal)
    },
    async contentOf({ kubernetes }) {
      const sources = await Promise.all([
        ...kubernetesPrograms.map((name) => programs.find(name, kubernetes.version)),
        ...tools.map((name) => programs.find(name)),
      ])
      return sources.flatMap((each) => (each.kind === 'content' ? [each.found.entryDigest] : []))
    },
    prepare(desired, observed) {
      if (isToBeChanged(desired, observed)) return []
      if (observed.isPrepared) return observed.containerd === 'running' ? [] : [startContainerd]
      return prepareSteps(desired)
    },
    init(desired, observed) {
      if (isToBeChanged(desired, observed)) return []
      const initialise = action('kubeadm-init', 'Set up the control plane', 15, {
        uid: desired.uid,
        version: desired.kubernetes.version,
        ...configurationOf(desired),
      })
      switch (observed.controlPlane) {
        case 'absent':
          return [initialise]
        case 'partial':
          return [action('kubeadm-clear', 'Clear an unfinished control plane', 10), initialise]
        case 'complete':
          // The kubelet and the API server may not start before the renewal, which waits for both.
          if (observed.isRenewalOverdue) return []
          return [
            ...(observed.followsHostName === undefined
              ? []
              : [
                  action(nodeNameStep, 'Give the kubelet the name of the node', 5, {
                    node: desired.node.name,
                  }),
                ]),
            ...(observed.kubelet === 'running' ? [] : [action('start-units', 'Start the kubelet', 5)]),
            ...(observed.api === 'answers'
              ? []
              : [call('wait-for-api', 'Wait for the API server', 5, desiredOf(desired))]),
          ]
      }
    },
    change(desired, observed) {
      if (!isToBeChanged(desired, observed)) return []
      if (observed.change || observed.version !== desired.kubernetes.version)
        return versionSteps(stepMaker, desired, observed)
      return [...prepareSteps(desired), reconfigure(desired)]
    },
    renew(desired, observed, isAskedFor) {
      // A change makes certificates anew itself, and comes first.
      if (observed.controlPlane !== 'complete' || isToBeChanged(desired, observed)) return []
      if (!observed.isRenewalDue && !isAskedFor) return []
      const step = action(renewalStep, 'Renew the certificates of the control plane', 15)
      return [observed.isRenewalOverdue ? step : { ...step, isAside: true }]
    },
    certificates,
    copies: () => listCopies(paths),
    observe: observer,
    reset: (_desired, observed) =>
      observed.isPresent ? [action('remove-kubernetes', 'Remove Kubernetes', 30)] : [],
    kubeconfig: readAdminKubeconfig,
    watch: (onChange) => watchUnits({ onChange, log }),
    eventOf,
  }
}

/**
 * Whether the present control plane is to become another one, which `change` does: nothing may be prepared before in place of the running
 * one, and the API server need not answer.
 */
const isToBeChanged = ({ kubernetes }: DesiredState, observed: EngineObserved): boolean =>
  observed.controlPlane === 'complete' &&
  (observed.change !== undefined || observed.version !== kubernetes.version || !observed.isConfigured)

/** Input of the noted digest of the configuration of node and control plane. */
const configurationOf = (desired: DesiredState) => ({
  node: desired.node.name,
  labels: desired.node.labels,
  taints: desired.node.taints,
  digest: configurationDigest(desired),
})

/** Digest of the input of the preparation. */
function digestOf(desired: DesiredState): string {
  return createHash('sha256')
    .update(JSON.stringify(desiredOf(desired)))
    .digest('hex')
}

const desiredOf = ({ name, kubernetes, node }: DesiredState): DesiredKubeadm => ({ name, kubernetes, node })
