import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** A real Kubernetes of one version, for tests. */
export interface KubernetesKit {
  /** Without `v`. */
  readonly version: string
  /** Folder with kubeadm, kubelet, kubectl, kube-apiserver, etcd, etcdctl, helm and others by their usual names. */
  readonly programs: string
  /** Makes, once, a folder of OCI archives: the images of this version, a cluster network and busybox. */
  images(): Promise<string>
  /** YAML of the cluster network, for the pod network 10.244.0.0/16. */
  readonly networkManifest: string
}

export const kitVersions = ['1.34.4', '1.33.13'] as const
export type KitVersion = (typeof kitVersions)[number]

const checkout = join(import.meta.dirname, '../..')
const cache = join(checkout, '.cache/kubernetes')

/** The folder `shared/tools/kubernetes` beside the checkout, or beside a folder around it as for a worktree. */
function findFolder(): string | undefined {
  for (let folder = dirname(checkout); ; folder = dirname(folder)) {
    const found = join(folder, 'shared/tools/kubernetes')
    if (existsSync(join(found, 'unpack'))) return found
    if (folder === dirname(folder)) return undefined
  }
}

const folder = findFolder()

/** Whether there is a kit. */
export const hasKit = folder !== undefined

/** Why tests of a real Kubernetes are skipped. */
export const noKit = 'skipped: no Kubernetes in ../shared/tools/kubernetes'

/**
 * For `describe.skipIf(...)` and `it.skipIf(...)`: says on standard error that the tests of a file are skipped.
 */
export function isKitMissing(): boolean {
  if (!hasKit) process.stderr.write(`\n*** ${noKit} ***\n\n`)
  return !hasKit
}

/** The kit, unpacked into `.cache/kubernetes` once per checkout; undefined if there is none. */
export async function kit(version: KitVersion = '1.34.4'): Promise<KubernetesKit | undefined> {
  if (folder === undefined) return undefined
  const programs = await madeOnce(`bin-${version}`, (making) =>
    run(join(folder, 'unpack'), [making, version]),
  )
  return {
    version,
    programs,
    networkManifest: join(folder, 'network.yaml'),
    images: () =>
      madeOnce(`images-${version}`, (making) =>
        run('python3', [join(folder, 'images'), programs, making, version]),
      ),
  }
}

const run = promisify(execFile)

/** Makes a folder of the cache, whole or not at all; of two that make it at the same time one wins. */
async function madeOnce(name: string, make: (path: string) => Promise<unknown>): Promise<string> {
  const path = join(cache, name)
  if (existsSync(path)) return path
  await mkdir(cache, { recursive: true })
  const making = await mkdtemp(`${path}.`)
  try {
    await make(making)
    await chmod(making, 0o755)
    await rename(making, path).catch((error: unknown) => {
      if (!existsSync(path)) throw error
    })
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return path
}
