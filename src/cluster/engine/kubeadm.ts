import { kubernetesPacks } from '../change/version.ts'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { ContentAccess } from '../../content/store/find.ts'
import type { RegistryState } from '../../content/registry/registry.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { Logger } from '../../system/log.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { ClusterSettings } from '../config.ts'
import type { Step, StepOrder } from '../step.ts'
import type { EngineObserved } from '../observed.ts'
import type { Wanted } from '../wanted.ts'
import { renewalStep } from '../certificates/renewal-step.ts'
import { createEngineCalls } from './calls.ts'
import { createCertificateReader } from './certificates/certificate-reader.ts'
import type { KubeadmWanted } from './kubeadm-config.ts'
import { parseContainerdVersion } from './containerd-config.ts'
import type { Engine } from './engine.ts'
import { eventOf } from './step-lines.ts'
import { createKubeadmFiles } from './kubeadm-files.ts'
import { createObserver } from './observe.ts'
import { clusterPaths, kubernetesFiles } from './paths.ts'
import { createPrograms, kubernetesPrograms, tools, type Programs } from './programs.ts'
import { configurationDigest } from './reconfigure/configured.ts'
import { registryFilesOf } from './registry-files.ts'
import { nodeNameStep } from './node-name.ts'
import { listCopies } from './upgrade/copy.ts'
import { versionSteps, type StepMaker } from './upgrade/steps.ts'
import { watchUnits } from './watch-units.ts'

export interface KubeadmEngineOptions {
  readonly stateDirectory: string
  readonly settings: ClusterSettings
  readonly content: Pick<ContentAccess, 'findProgram' | 'programVersions'>
  /** Of this host, as OCI names it. */
  readonly architecture: string
  readonly registry: () => RegistryState
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
export interface KubeadmEngine extends Engine {
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
    ...{ folder: paths.programs, hostFolder: settings.programs.directory, content, architecture, runner },
  })
  const files = createKubeadmFiles({ folder: paths.folder, runner })
  const registryFiles = () => registryFilesOf(paths, options.registry(), options.certificate())
  const certificates = createCertificateReader(paths)
  const observer = createObserver({
    ...{ paths, runner, client, registryFiles, programs, digestOf, certificates },
    now: options.now,
  })

  const containerdVersion = () =>
    runner.run('containerd', ['--version'], { timeoutMs: 20_000 }).then(
      ({ stdout }) => parseContainerdVersion(stdout),
      () => undefined,
    )

  const action = (key: string, title: string, minutes: number, order: StepOrder = {}): Step => ({
    ...{ key, title, timeoutMs: minutes * minute },
    work: { kind: 'action', action: key, order: { stateDirectory, ...order } },
  })
  const call = (key: string, title: string, minutes: number, order: KubeadmWanted): Step => ({
    ...{ key, title, timeoutMs: minutes * minute },
    work: { kind: 'call', call: key, order: { ...order } },
  })

  const startContainerd = action('start-containerd', 'Start the container runtime', 5)
  const prepareSteps = (wanted: Wanted): readonly Step[] => {
    const order = wantedOf(wanted)
    return [
      call('place-programs', 'Place the programs of Kubernetes', 10, order),
      call('write-engine-files', 'Write the files of kubeadm', 2, order),
      startContainerd,
      action('pull-images', 'Pull the images of Kubernetes', 30, { digest: digestOf(wanted) }),
    ]
  }

  const reconfigure = (wanted: Wanted) =>
    action('reconfigure', 'Apply the configuration of Kubernetes', 15, configurationOf(wanted))
  const stepMaker: StepMaker = {
    ...{ action, reconfigure, prepare: prepareSteps },
    call: (key, title, minutes, wanted) => call(key, title, minutes, wantedOf(wanted)),
  }

  return {
    packs: kubernetesPacks,
    programs,
    calls: createEngineCalls({ paths, programs, files, registryFiles, client }),
    async preflight(wanted, signal) {
      // Loaded with the first cluster: a start does not need yaml.
      const { createEnginePreflight } = await import('./preflight.ts')
      return createEnginePreflight({ programs, files, registryFiles, containerdVersion })(wanted, signal)
    },
    async images(wanted, signal) {
      const kubeadm = await programs.place('kubeadm', wanted.kubernetes.version)
      return files.images(kubeadm, await files.make(kubeadm, wanted, signal), signal)
    },
    async contentOf({ kubernetes }) {
      const sources = await Promise.all([
        ...kubernetesPrograms.map((name) => programs.find(name, kubernetes.version)),
        ...tools.map((name) => programs.find(name)),
      ])
      return sources.flatMap((each) => (each.kind === 'content' ? [each.found.entryDigest] : []))
    },
    prepare(wanted, observed) {
      if (isToBeChanged(wanted, observed)) return []
      if (observed.isPrepared) return observed.containerd === 'running' ? [] : [startContainerd]
      return prepareSteps(wanted)
    },
    init(wanted, observed) {
      if (isToBeChanged(wanted, observed)) return []
      const initialise = action('kubeadm-init', 'Set up the control plane', 15, {
        ...{ uid: wanted.uid, version: wanted.kubernetes.version, ...configurationOf(wanted) },
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
                    node: wanted.node.name,
                  }),
                ]),
            ...(observed.kubelet === 'running' ? [] : [action('start-units', 'Start the kubelet', 5)]),
            ...(observed.api === 'answers'
              ? []
              : [call('wait-for-api', 'Wait for the API server', 5, wantedOf(wanted))]),
          ]
      }
    },
    change(wanted, observed) {
      if (!isToBeChanged(wanted, observed)) return []
      if (observed.change || observed.version !== wanted.kubernetes.version)
        return versionSteps(stepMaker, wanted, observed)
      return [...prepareSteps(wanted), reconfigure(wanted)]
    },
    renew(wanted, observed, isAskedFor) {
      // A change makes certificates anew itself, and comes first.
      if (observed.controlPlane !== 'complete' || isToBeChanged(wanted, observed)) return []
      if (!observed.isRenewalDue && !isAskedFor) return []
      const step = action(renewalStep, 'Renew the certificates of the control plane', 15)
      return [observed.isRenewalOverdue ? step : { ...step, isAside: true }]
    },
    certificates,
    copies: () => listCopies(paths),
    observe: observer,
    reset: (_wanted, observed) =>
      observed.isPresent ? [action('remove-kubernetes', 'Remove Kubernetes', 30)] : [],
    kubeconfig: readAdminKubeconfig,
    watch: (onChange) => watchUnits({ onChange, log }),
    eventOf,
  }
}

/**
 * Whether the control plane that is set up is to become another one, which `change` does: nothing may be prepared before in place of what
 * runs, and the API server need not answer.
 */
const isToBeChanged = ({ kubernetes }: Wanted, observed: EngineObserved): boolean =>
  observed.controlPlane === 'complete' &&
  (observed.change !== undefined || observed.version !== kubernetes.version || !observed.isConfigured)

/** What the configuration of the node and of the control plane is noted by. */
const configurationOf = (wanted: Wanted) => ({
  ...{ node: wanted.node.name, labels: wanted.node.labels, taints: wanted.node.taints },
  digest: configurationDigest(wanted),
})

/** What the preparation depends on. */
function digestOf(wanted: Wanted): string {
  return createHash('sha256')
    .update(JSON.stringify(wantedOf(wanted)))
    .digest('hex')
}

const wantedOf = ({ name, kubernetes, node }: Wanted): KubeadmWanted => ({ name, kubernetes, node })
