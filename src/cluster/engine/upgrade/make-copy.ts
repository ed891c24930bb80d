import { stat, statfs, mkdir, readFile, readlink, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isThere } from '../../../system/files.ts'
import { existsSync } from 'node:fs'
import { StepFailed, type StepAction } from '../../loop/step.ts'
import { certificatesFolderIn } from '../certificates.ts'
import { commands } from '../step-lines.ts'
import { expectReady } from '../kubectl.ts'
import { ctr, endContainers, runningContainers } from '../node-containers.ts'
import { clusterPaths, kubernetesFiles, units, type ClusterPaths } from '../paths.ts'
import { kubernetesPrograms } from '../../needs/needs.ts'
import { type UpgradeOrder, readInitFile } from './check.ts'
import {
  copiedFiles,
  filesOf,
  finishCopy,
  isTemporary,
  stagingOf,
  type KubernetesCopy,
  bytesBelow,
  copyTree,
  sumsOf,
} from './copy.ts'
import { readChange, writeChange, upgradeRefused } from '../notes.ts'

/** Bytes to write to a file system, and its room. */
export interface RoomNeed {
  /** A folder in it, for operators. */
  readonly folder: string
  readonly neededBytes: number
  readonly freeBytes: number
}

/** So much stays free for everything else on the host. */
const reserveBytes = 256 * 1_048_576

/** Lack of room; undefined for none. Pure. */
export function lackOfRoom(needs: readonly RoomNeed[]): string | undefined {
  const short = needs.find(({ neededBytes, freeBytes }) => neededBytes + reserveBytes > freeBytes)
  return (
    short &&
    `the file system of ${short.folder} has ${mebibytes(short.freeBytes)} free, and an upgrade that can be taken back needs ${mebibytes(short.neededBytes)} there, and ${mebibytes(reserveBytes)} for everything else; make room, then apply the change again`
  )
}

/**
 * Writes of an upgrade, by file system: the copy; the data of etcd once more at its place, if the copy is restored; and the copy of it that
 * kubeadm makes by itself.
 */
export async function roomNeeds(
  sizes: readonly (readonly [folder: string, bytes: number])[],
): Promise<readonly RoomNeed[]> {
  const needs = new Map<number, RoomNeed>()
  for (const [folder, bytes] of sizes) {
    const present = await presentFolder(folder)
    const { dev } = await stat(present)
    const { bavail, bsize } = await statfs(present)
    const known = needs.get(dev)
    needs.set(dev, {
      folder: known?.folder ?? folder,
      neededBytes: (known?.neededBytes ?? 0) + bytes,
      freeBytes: bavail * bsize,
    })
  }
  return [...needs.values()]
}

/** The folder itself, or the next one above it that is there. */
async function presentFolder(folder: string): Promise<string> {
  return (await isThere(folder)) ? folder : presentFolder(dirname(folder))
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 1_048_576)} MiB`

/**
 * @param output of `ctr images list`: a table with name, type and digest first. Pure.
 * @returns the digest of each image by its name
 */
export function parseImages(output: string): Readonly<Record<string, string>> {
  const rows = output.split('\n').map((line) => line.trim().split(/\s+/))
  return Object.fromEntries(
    rows.flatMap(([name = '', , digest = '']) => (digest.startsWith('sha256:') ? [[name, digest]] : [])),
  )
}

const readyMs = 180_000

/**
 * Makes the copy to go back to: etcd does not run while its data is copied, so for some seconds the API does not answer; workloads keep running.
 * Whatever goes wrong, the kubelet is started again.
 */
export const makeCopy: StepAction = async (given, print) => {
  const { stateDirectory, from, to, generation } = given as unknown as UpgradeOrder
  const paths = clusterPaths(stateDirectory)
  const noted = await readChange(paths)
  if (noted !== undefined && noted !== 'damaged' && noted.phase !== 'copying') return
  const config = await readFile(paths.kubeadmConfig, 'utf8')
  const { etcd } = readInitFile(config)
  if (etcd === undefined)
    throw upgradeRefused('the cluster uses an etcd outside of it, of which no copy can be made here')
  const data = join(etcd, 'member')
  if (noted === undefined) await refuseWithoutRoom(paths, etcd, data)

  const staging = stagingOf(paths, generation)
  const files = filesOf(staging)
  await rm(staging, { recursive: true, force: true })
  await mkdir(files, { recursive: true, mode: 0o700 })
  const [programs, images] = [await readPrograms(paths), await readImages(paths)]
  await writeChange(paths, { from, to, generation, phase: 'copying', at: Date.now() })
  print('[copying] the kubelet and etcd are stopped for the copy; workloads keep running')
  let at: number
  try {
    await commands.run('systemctl', ['stop', units.kubelet], { timeoutMs: 90_000 })
    // The API server too: one whose etcd is away keeps its clients waiting, also the kubelet, which then starts etcd minutes later.
    for (const name of ['kube-apiserver', 'etcd']) await endContainers([name])
    if ((await runningContainers(['etcd'])).length > 0) throw new StepFailed('etcd could not be ended')
    at = Date.now()
    await copyPath(files, data)
  } finally {
    await commands.attempt('systemctl', ['start', units.kubelet], { timeoutMs: 90_000 })
  }
  await copyPath(files, kubernetesFiles.folder)
  const certificates = await certificatesFolderIn(config)
  if (!certificates.startsWith(`${kubernetesFiles.folder}/`)) await copyPath(files, certificates)
  for (const path of copiedFiles(paths)) if (existsSync(path)) await copyPath(files, path)
  const sums = await sumsOf(files)
  const copy: KubernetesCopy = { from, to, generation, at, etcd, programs, images, sums }
  await finishCopy(paths, copy)
  await expectReady(paths, readyMs, 'the API server does not answer after the copy')
  await writeChange(paths, { from, to, generation, phase: 'copied', at: Date.now() })
  const bytes = sums.reduce((sum, each) => sum + each.bytes, 0)
  print(
    `[copied] Kubernetes ${from} of ${new Date(at).toISOString()} is copied: ${sums.length} files, ${Math.ceil(bytes / 1_048_576)} MiB`,
  )
}

/** Copies a path of the host to its place in a copy. */
async function copyPath(files: string, path: string): Promise<void> {
  const target = join(files, path)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  await copyTree(path, target, isTemporary)
}

async function refuseWithoutRoom(paths: ClusterPaths, etcd: string, data: string): Promise<void> {
  const bytes = await bytesBelow(data)
  const lack = lackOfRoom(
    await roomNeeds([
      [paths.folder, bytes],
      [etcd, bytes],
      [kubernetesFiles.folder, bytes],
    ]),
  )
  if (lack !== undefined) throw upgradeRefused(lack)
}

const readPrograms = async ({ programs }: ClusterPaths): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(
      kubernetesPrograms.map(
        async (name) => [name, await readlink(join(programs, name, 'current'))] as const,
      ),
    ),
  )

/** Digests of the images that Kubernetes itself needs. */
async function readImages({ kubernetesImages }: ClusterPaths): Promise<Record<string, string>> {
  const names = JSON.parse(await readFile(kubernetesImages, 'utf8')) as readonly string[]
  const all = parseImages(await ctr('images', 'list'))
  return Object.fromEntries(names.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])))
}
