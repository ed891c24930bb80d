import {
  access,
  chown,
  constants,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isThere, replaceFile, syncFolder, syncTree } from '../../../system/files.ts'
import { StepFailed, type StepAction } from '../../loop/step.ts'
import { commands } from '../step-lines.ts'
import { expectReady } from '../kubectl.ts'
import { ctr, endAll, killAll, runningWorkloads, runningContainers } from '../node-containers.ts'
import { clusterPaths, kubernetesFiles, units, type ClusterPaths } from '../paths.ts'
import { kubernetesPrograms } from '../../needs/needs.ts'
import { pointTo } from '../programs.ts'
import { staticPods } from '../configured.ts'
import {
  copiedFiles,
  filesOf,
  folderOf,
  listCopies,
  readCopy,
  stagingOf,
  type FoundCopy,
  copyTree,
  damageOf,
} from './copy.ts'
import { parseImages } from './make-copy.ts'
import {
  readChange,
  readVersion,
  removeChange,
  writeChange,
  writeVersion,
  type ChangeNote,
  restoreRefused,
} from '../notes.ts'

/** Order of `kubernetes-restore`. */
export interface RestoreOrder {
  readonly stateDirectory: string
  /** The version to go back to. */
  readonly version: string
}

type Print = (line: string) => void

const readyMs = 180_000
const stopMs = 90_000

/**
 * Puts the copy in the place of Kubernetes: data of etcd, files, programs. A copy that is damaged is found before anything is stopped.
 * Cut off, it begins again; until it ends the note of the change says that it is under way.
 */
export const restoreKubernetes: StepAction = async (given, print) => {
  const { stateDirectory, version } = given as unknown as RestoreOrder
  const paths = clusterPaths(stateDirectory)
  const noted = await readChange(paths)
  if (noted === 'damaged')
    throw new StepFailed(
      `${paths.change} cannot be read, so it is unknown what there is to restore; the copies are in ${paths.copies}`,
    )
  if (noted?.phase === 'copying') return endCopying(paths, noted, print)
  const copy = await findCopy(paths, noted, version)
  const startedAt = Date.now()
  await writeChange(paths, {
    from: copy.from,
    to: noted?.to ?? (await readVersion(paths)) ?? copy.to,
    generation: copy.generation,
    phase: 'restoring',
    at: noted?.at ?? startedAt,
  })
  const copiedAt = new Date(copy.at).toISOString()
  print(`[restoring] Kubernetes ${copy.from} of ${copiedAt} is restored`)
  await commands.attempt('systemctl', ['start', units.containerd], { timeoutMs: stopMs })
  const workloads = await runningWorkloads(staticPods)
  await commands.run('systemctl', ['stop', units.kubelet], { timeoutMs: stopMs })
  // Their last writes are discarded, so nothing is lost by force.
  await killAll((await runningContainers(staticPods)).map(({ id }) => id))
  const left = await runningContainers(staticPods)
  if (left.length > 0)
    throw new StepFailed(`${left.map(({ name }) => name).join(', ')} could not be ended; ${kept(copy)}`)
  const aside = await restoreData(copy)
  await restoreFiles(paths, copy)
  for (const name of kubernetesPrograms)
    await pointTo(join(paths.programs, name, 'current'), copy.programs[name] ?? '')
  await sayMissingImages(copy, print)
  const failed = await commands.attempt('systemctl', ['start', units.kubelet], { timeoutMs: stopMs })
  if (failed !== undefined)
    throw new StepFailed(`the kubelet does not start; ${kept(copy)}; see: journalctl -u ${units.kubelet}`)
  const silence = `the API server of the restored Kubernetes ${copy.from} does not answer`
  await expectReady(paths, readyMs, silence, `; ${kept(copy)}; see: journalctl -u ${units.kubelet}`)
  const readyAt = Date.now()
  // Programs that watched the API know objects of a later time, and would not see that they are other ones now.
  await endAll(workloads)
  await writeVersion(paths, copy.from)
  // The preparation is of the other version.
  for (const path of [paths.prepared, paths.next.folder, aside])
    await rm(path, { recursive: true, force: true })
  await removeChange(paths)
  print(
    `[restored] Kubernetes ${copy.from} runs again, ${Math.ceil((readyAt - startedAt) / 1_000)} s after its restoration began; what was written to its API between ${copiedAt} and ${new Date(startedAt).toISOString()} is lost; ${workloads.length} containers were started again`,
  )
}

/** Before the copy was whole nothing was changed. */
async function endCopying(
  paths: ClusterPaths,
  { generation, from }: ChangeNote,
  print: Print,
): Promise<void> {
  for (const unit of [units.containerd, units.kubelet]) {
    const failed = await commands.attempt('systemctl', ['start', unit], { timeoutMs: stopMs })
    if (failed !== undefined) throw new StepFailed(`${unit} does not start; see: journalctl -u ${unit}`)
  }
  await expectReady(paths, readyMs, 'the API server does not answer', `; see: journalctl -u ${units.kubelet}`)
  for (const path of [stagingOf(paths, generation), folderOf(paths, generation), paths.next.folder])
    await rm(path, { recursive: true, force: true })
  await removeChange(paths)
  print(`[unchanged] Kubernetes ${from} runs; nothing of it had been changed`)
}

/** @throws StepFailed where there is no whole copy; before a restoration has started the change ends with that */
async function findCopy(
  paths: ClusterPaths,
  noted: ChangeNote | undefined,
  version: string,
): Promise<FoundCopy> {
  const fail = (why: string) => (noted ? new StepFailed(why) : restoreRefused(why))
  const copy = noted
    ? await readCopy(folderOf(paths, noted.generation))
    : (await listCopies(paths)).find(({ from }) => from === version)
  if (!copy)
    throw fail(
      noted
        ? `the copy of Kubernetes ${noted.from} in ${folderOf(paths, noted.generation)} is gone or cannot be read; delete the cluster and create it again`
        : `no copy of Kubernetes ${version} is kept in ${paths.copies}`,
    )
  const damage = await damageOf(filesOf(copy.folder), copy.sums)
  if (damage !== undefined) throw fail(`the copy in ${copy.folder} is damaged: ${damage}`)
  for (const name of kubernetesPrograms) {
    const program = join(copy.programs[name] ?? '', name)
    const isProgram = await access(program, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (!isProgram)
      throw fail(
        `${program} of the copy in ${copy.folder} is gone; upload a bundle with ${name} ${copy.from}`,
      )
  }
  return copy
}

const kept = ({ folder }: FoundCopy) => `the copy in ${folder} is kept, and it is tried again`

/** Puts the data of the copy in the place of etcd's. @returns the folder that keeps the former data until the end */
async function restoreData({ etcd, folder }: FoundCopy): Promise<string> {
  // In the data folder itself, which may be a mount.
  const [data, made, aside] = ['member', '.edgehostd-restored', '.edgehostd-aside'].map((name) =>
    join(etcd, name),
  ) as [string, string, string]
  await rm(made, { recursive: true, force: true })
  await copyTree(join(filesOf(folder), data), made)
  await syncTree(made)
  if (await isThere(data)) {
    await rm(aside, { recursive: true, force: true })
    await rename(data, aside)
  }
  await rename(made, data)
  await syncFolder(etcd)
  return aside
}

async function restoreFiles(paths: ClusterPaths, { etcd, folder, sums }: FoundCopy): Promise<void> {
  const files = filesOf(folder)
  const desired = sums.map(({ path }) => `/${path}`).filter((path) => !path.startsWith(`${etcd}/`))
  const added = [
    ...(await readdir(kubernetesFiles.manifests)).map((name) => join(kubernetesFiles.manifests, name)),
    ...copiedFiles(paths),
  ].filter((path) => !desired.includes(path))
  for (const path of added) await rm(path, { recursive: true, force: true })
  for (const path of desired) {
    const source = join(files, path)
    const { uid, gid, mode } = await lstat(source)
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    const link = await readlink(source).catch(() => undefined)
    if (link === undefined) {
      await replaceFile(path, await readFile(source), mode & 0o777)
      await chown(path, uid, gid)
    } else if ((await readlink(path).catch(() => undefined)) !== link) {
      await rm(path, { force: true })
      await symlink(link, path)
    }
  }
}

/** The kubelet pulls them from the registry of this host, which keeps them as long as the copy. */
async function sayMissingImages({ images }: FoundCopy, print: Print): Promise<void> {
  const present = parseImages(await ctr('images', 'list'))
  for (const [name, digest] of Object.entries(images))
    if (present[name] !== digest)
      print(`[restoring] the image ${name} is not there as it was; it is pulled again`)
}
