import { copyFile, mkdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { readNote } from './notes.ts'
import { type ClusterPaths, clusterPaths, kubernetesFiles, units } from './paths.ts'
import {
  type KnownCertificate,
  isPair,
  parseClient,
  createCertificateReader,
  certificatesFolderIn,
  knownCertificates,
  kubeletNames,
  dueCertificates,
  nextRenewalAt,
} from './certificates.ts'
import { existsSync } from 'node:fs'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { commands } from './step-lines.ts'
import { expectReady, withLastWords } from './kubectl.ts'
import { startKubeletUnit, endAll, runningContainers, waitForContainers } from './node-containers.ts'
import { staticPods } from './configured.ts'
import { runKubeadm } from './run-kubeadm.ts'

/** Progress of an unfinished renewal, as noted on the disk. */
export interface Renewal {
  /** `copied`: kubeadm may be writing the files. `renewed`: they are written, and their readers have to be restarted. */
  readonly phase: (typeof phases)[number]
  /** Ids of the containers of the static pods that ran with the certificates before. */
  readonly old: readonly string[]
  /** The kubeconfig of the kubelet is made anew too. */
  readonly withKubelet: boolean
}

const phases = ['copied', 'renewed'] as const

type Paths = Pick<ClusterPaths, 'renewal'>

const noteOf = ({ renewal }: Paths) => join(renewal, 'note.json')
const copyOf = ({ renewal }: Paths, file: string) =>
  join(renewal, `${encodeURIComponent(file.replace(/^\//, ''))}.copy`)

/** @returns undefined where none was started, and where the note says nothing: then nothing was changed yet */
export async function readRenewal(paths: Paths): Promise<Renewal | undefined> {
  const noted = await readNote<Renewal>(noteOf(paths))
  if (noted === undefined || noted === 'damaged' || !phases.includes(noted.phase)) return undefined
  const { phase, old, withKubelet } = noted
  return { phase, old: Array.isArray(old) ? old.map(String) : [], withKubelet }
}

export const noteRenewal = (paths: Paths, renewal: Renewal): Promise<void> =>
  replaceFile(noteOf(paths), JSON.stringify(renewal), 0o600)

/**
 * Copies the files that kubeadm will write: it writes in place, so a power cut may leave a file without content, which it would refuse ever
 * after. The copy has private keys; it is there only while a renewal is under way.
 */
export async function copyForRenewal(paths: Paths, files: readonly KnownCertificate[]): Promise<void> {
  await removeRenewal(paths)
  await mkdir(paths.renewal, { recursive: true, mode: 0o700 })
  for (const { file, key } of files)
    for (const each of key === undefined ? [file] : [file, key])
      try {
        await copyFile(each, copyOf(paths, each))
        await syncFolder(copyOf(paths, each))
      } catch (error) {
        // Files of an etcd elsewhere are not here.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
  await syncFolder(paths.renewal)
}

/**
 * Puts back damaged files: a certificate and its key that do not belong together any more. Whole ones stay.
 * @returns the files that were put back
 */
export async function putBackDamaged(paths: Paths, files: readonly KnownCertificate[]): Promise<string[]> {
  const back: string[] = []
  for (const { file, key } of files) {
    const texts = [await textOf(file), key === undefined ? undefined : await textOf(key)] as const
    if (isWhole(...texts)) continue
    const copies = [
      await textOf(copyOf(paths, file)),
      key === undefined ? undefined : await textOf(copyOf(paths, key)),
    ] as const
    if (!isWhole(...copies)) continue
    // The key first, as kubeadm does; it is not read without its certificate.
    if (key !== undefined && copies[1] !== undefined) await replaceFile(key, copies[1], 0o600)
    await replaceFile(file, copies[0], key === undefined ? 0o600 : 0o644)
    back.push(basename(file))
  }
  return back
}

/** @param key undefined for a kubeconfig */
function isWhole(text: string, key: string | undefined): boolean {
  if (key !== undefined) return isPair(text, key)
  const client = parseClient(text)
  return isPair(client.certificate ?? '', client.key ?? '')
}

const textOf = (path: string) => readFile(path, 'utf8').catch(() => '')

/** Syncs the files of kubeadm to the disk. */
export async function syncFiles(files: readonly KnownCertificate[]): Promise<void> {
  for (const { file, key } of files)
    for (const each of key === undefined ? [file] : [file, key])
      await syncFolder(each).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      })
}

export const removeRenewal = ({ renewal }: Paths): Promise<void> =>
  rm(renewal, { recursive: true, force: true })

type Print = (line: string) => void

const startMs = 180_000
// The kubelet starts a container at once that has not ended for ten minutes, and lets others wait longer each time.
const promptMs = 12_000

/**
 * Renews all certificates of the control plane, also of one that does not run since they have ended, and starts the static pods again by
 * ending their containers. Nothing before the wait for the API server needs it.
 */
export const renewCertificates: StepAction = async (order, print) => {
  const paths = clusterPaths(String(order.stateDirectory))
  const read = createCertificateReader(paths)
  const config = await readFile(paths.kubeadmConfig, 'utf8')
  const files = knownCertificates(await certificatesFolderIn(config))
  const noted = await readRenewal(paths)
  // After a host was off for long, written certificates are due again; so may be the kubelet's.
  const isWritten = noted?.phase === 'renewed' && dueCertificates(await read(), Date.now()).length === 0
  const renewal = isWritten ? noted : await renewFiles(noted)
  await restart(paths, renewal, print)
  await removeRenewal(paths)
  const seen = await read()
  const due = dueCertificates(seen, Date.now()).map(({ name }) => name)
  if (due.length > 0)
    throw new StepFailed(
      `kubeadm did not renew ${due.join(', ')}; see on this host: kubeadm certs check-expiration`,
    )
  const next = nextRenewalAt(seen)
  const at = next === undefined ? '' : `; they are renewed again at ${new Date(next).toISOString()}`
  print(`[renewed] the certificates of the control plane are renewed, and its parts run with them${at}`)

  /** @param started one that was cut off */
  async function renewFiles(started: Renewal | undefined): Promise<Renewal> {
    if (started) {
      const back = await putBackDamaged(paths, files)
      for (const name of back)
        print(`[certificates] ${name} was cut off while it was written, and is put back`)
    }
    const isClientDue = dueCertificates(await read(), Date.now()).some(
      ({ name }) => name === kubeletNames.client,
    )
    const withKubelet = isClientDue || started?.withKubelet === true
    // Also containers started since the first try: they may have read the former files.
    const running = (await runningContainers(podsHere())).map(({ id }) => id)
    const old = [...new Set([...(started?.old ?? []), ...running])]
    if (!started) await copyForRenewal(paths, files)
    await noteRenewal(paths, { phase: 'copied', old, withKubelet })
    const args = ['certs', 'renew', 'all', '--config', paths.kubeadmConfig]
    const failed = await runKubeadm(paths, args, print)
    if (failed !== undefined) {
      await giveUp(paths, files)
      throw new StepFailed(`kubeadm certs renew failed: ${failed}`)
    }
    if (withKubelet) await makeKubeletConfig(paths, print)
    await syncFiles(files)
    const renewed = { phase: 'renewed', old, withKubelet } as const
    await noteRenewal(paths, renewed)
    return renewed
  }
}

/** kubeadm ended by itself, so its files are whole, or are put back; the next try begins anew. */
async function giveUp(paths: ClusterPaths, files: readonly KnownCertificate[]): Promise<void> {
  await putBackDamaged(paths, files)
  await removeRenewal(paths)
}

/**
 * The kubelet has no valid certificate any more, as on a host that was off for a year, and cannot ask for one with it: it gets one that it
 * then renews by itself.
 */
async function makeKubeletConfig(paths: ClusterPaths, print: Print): Promise<void> {
  await rm(kubernetesFiles.kubeletConfig, { force: true })
  const args = ['init', 'phase', 'kubeconfig', 'kubelet', '--config', paths.kubeadmConfig]
  const failed = await runKubeadm(paths, args, print)
  if (failed !== undefined) throw new StepFailed(`the kubeconfig of the kubelet cannot be made: ${failed}`)
  print('[certificates] the kubelet gets a new certificate: it could not renew its own')
}

const podsHere = () =>
  staticPods.filter((name) => existsSync(join(kubernetesFiles.manifests, `${name}.yaml`)))

/** Restarts programs that read the certificates only at their start. */
async function restart(paths: ClusterPaths, { old, withKubelet }: Renewal, print: Print): Promise<void> {
  await startKubelet(withKubelet ? 'restart' : 'start')
  const names = podsHere()
  await endAll(old)
  const late = await waitForContainers({ names, old, timeoutMs: promptMs, steadyMs: 0 })
  if (late.length > 0) {
    print(`[certificates] the kubelet is started again, since it lets ${late.join(', ')} wait`)
    await startKubelet('restart')
  }
  const left = await waitForContainers({ names, old, timeoutMs: startMs })
  if (left.length > 0) {
    const reasons = await Promise.all(left.map((name) => withLastWords(name)))
    throw new StepFailed(`with the renewed certificates these do not run: ${reasons.join(', ')}`)
  }
  await expectReady(paths, startMs, 'the API server does not answer with the renewed certificates')
  if (!withKubelet) return
  const args = ['init', 'phase', 'kubelet-finalize', 'enable-client-cert-rotation']
  const failed = await runKubeadm(paths, [...args, '--config', paths.kubeadmConfig], print)
  if (failed !== undefined)
    throw new StepFailed(`the kubelet cannot be set up to renew its certificate: ${failed}`)
}

async function startKubelet(how: 'start' | 'restart'): Promise<void> {
  // systemd starts nothing that has failed too often in a short time.
  await commands.attempt('systemctl', ['reset-failed', units.kubelet])
  await startKubeletUnit(how)
}
