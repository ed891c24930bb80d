import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { replaceFile } from '../../system/files.ts'
import { StepFailed, type StepCalls } from '../step.ts'
import type { KubeadmWanted } from './kubeadm-config.ts'
import type { KubeadmFiles } from './kubeadm-files.ts'
import type { ClusterPaths } from './paths.ts'
import { kubernetesPrograms, tools, type Programs } from './programs.ts'
import { kubeadmIn } from './run-kubeadm.ts'
import { readNextPrograms } from './upgrade/next-programs.ts'
import type { RegistryFiles } from './registry-files.ts'

export interface EngineCallsOptions {
  readonly paths: ClusterPaths
  readonly programs: Programs
  readonly files: KubeadmFiles
  readonly registryFiles: () => RegistryFiles
  readonly client: Pick<KubernetesClient, 'isReady'>
}

const askEveryMs = 1_000

/** What the daemon itself does for the engine: it changes the state folder only. */
export function createEngineCalls(options: EngineCallsOptions): StepCalls {
  const { paths, programs, files, registryFiles, client } = options
  return {
    async 'place-programs'(order, { onLine }) {
      const { kubernetes } = order as unknown as KubeadmWanted
      const placed: string[] = []
      for (const name of kubernetesPrograms) placed.push(await programs.use(name, kubernetes.version))
      // Pre-flight asks for helm where a pack needs it; etcdctl is for administrators.
      for (const name of tools)
        if ((await programs.find(name)).kind !== 'missing') placed.push(await programs.use(name))
      onLine(`[programs] ${placed.join(', ')}`)
    },
    async 'write-engine-files'(order, { signal }) {
      const wanted = order as unknown as KubeadmWanted
      const registry = registryFiles()
      if (registry.problem !== undefined) throw new StepFailed(registry.problem)
      const kubeadm = programs.current('kubeadm')
      const config = await files.make(kubeadm, wanted, signal).catch(failed)
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
      const { version } = (order as unknown as KubeadmWanted).kubernetes
      const folders: Partial<Record<(typeof kubernetesPrograms)[number], string>> = {}
      for (const name of kubernetesPrograms) folders[name] = dirname(await programs.place(name, version))
      await mkdir(paths.next.folder, { recursive: true, mode: 0o700 })
      await replaceFile(paths.next.programs, JSON.stringify({ version, folders }), 0o600)
      onLine(`[programs] ${kubernetesPrograms.map((name) => `${name} ${version}`).join(', ')}`)
    },
    async 'write-next-files'(order, { signal }) {
      const wanted = order as unknown as KubeadmWanted
      const { version } = wanted.kubernetes
      const { program } = kubeadmIn((await readNextPrograms(paths, version)).folders)
      const config = await files.make(program, wanted, signal).catch(failed)
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
