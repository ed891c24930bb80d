import { copyFile, mkdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { readNote } from './notes.ts'
import type { ClusterPaths } from './paths.ts'
import type { KnownCertificate } from './certificates.ts'
import { isPair, parseClient } from './certificates.ts'

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
