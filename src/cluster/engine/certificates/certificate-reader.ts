import { readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isThere } from '../../../system/files.ts'
import { kubernetesFiles } from '../paths.ts'
import { certificatesFolderIn } from './certificates-folder.ts'
import { kubeletNames, knownAuthorities, knownCertificates } from './known-certificates.ts'
import { parseCertificates, parseClient, type Validity } from './parse.ts'
import type { SeenAuthority, SeenCertificate, SeenCertificates } from './seen-certificates.ts'

export interface CertificateReaderOptions {
  /** File for `kubeadm init`, which names the folder of the certificates. */
  readonly kubeadmConfig: string
  /** Folder of the kubeconfigs, by default that of kubeadm. */
  readonly configs?: string
  /** Folder of the certificates of the kubelet, where its kubeconfig does not name another. */
  readonly kubelet?: string
  /** By default from the disk. */
  readonly readText?: (path: string) => Promise<string>
}

/** Reads the certificates of Kubernetes on this host; a file is read again only when it has changed. */
export type ReadCertificates = () => Promise<SeenCertificates>

/** What a file says, or what is wrong with it; undefined where it is not there. */
type Told<T> = { readonly value: T; readonly writtenAt: number } | { readonly problem: string } | undefined

export function createCertificateReader({
  kubeadmConfig,
  configs = kubernetesFiles.folder,
  kubelet = '/var/lib/kubelet/pki',
  readText = (path) => readFile(path, 'utf8'),
}: CertificateReaderOptions): ReadCertificates {
  /** By path: what was made of the file, and the state of the file then. */
  const known = new Map<string, { readonly mark: string; readonly told: Told<never> }>()

  async function read<T>(path: string, parse: (text: string) => T | Promise<T>): Promise<Told<T>> {
    let mark: string
    let writtenAt: number
    try {
      const { mtimeMs, ctimeMs, size, ino } = await stat(path)
      mark = [mtimeMs, ctimeMs, size, ino].join()
      writtenAt = mtimeMs
    } catch (error) {
      known.delete(path)
      const { code, message } = error as NodeJS.ErrnoException
      return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : { problem: `${path}: ${message}` }
    }
    const before = known.get(path)
    if (before?.mark === mark) return before.told
    let told: Told<T>
    try {
      told = { value: await parse(await readText(path)), writtenAt }
    } catch (error) {
      told = { problem: `${path} cannot be used: ${(error as Error).message}` }
    }
    known.set(path, { mark, told: told as Told<never> })
    return told
  }

  return async () => {
    const given = await read(kubeadmConfig, certificatesFolderIn)
    const folder = given && 'value' in given ? given.value : await certificatesFolderIn('')
    const unreadable: string[] = []
    const keep = <T, S>(told: Told<T>, make: (value: T, writtenAt: number) => readonly S[]): readonly S[] => {
      if (!told) return []
      if ('value' in told) return make(told.value, told.writtenAt)
      unreadable.push(told.problem)
      return []
    }

    const authorities: SeenAuthority[] = []
    const signing = new Set<string>()
    for (const { name, file, key } of knownAuthorities(folder)) {
      authorities.push(
        ...keep(await read(file, first), (validity) => [{ name, ...validity, isOfCluster: true }]),
      )
      if (await isThere(key)) signing.add(name)
    }
    const certificates: SeenCertificate[] = []
    for (const { name, authority, file, key } of knownCertificates(folder, configs))
      certificates.push(
        ...keep(await read(file, key === undefined ? embedded : first), (validity, writtenAt) => [
          {
            ...{ name, authority, ...validity, writtenAt },
            renewedBy: signing.has(authority) ? ('kubeadm' as const) : ('external' as const),
          },
        ]),
      )

    const config = await read(join(configs, 'kubelet.conf'), clientOfKubelet)
    const client = config && 'value' in config ? config.value : undefined
    const ofClient = (validity: Validity, writtenAt: number): readonly SeenCertificate[] => [
      { name: kubeletNames.client, authority: 'ca', renewedBy: 'kubelet', ...validity, writtenAt },
    ]
    certificates.push(
      ...(client?.file === undefined
        ? keep(config, ({ embedded: validity }, writtenAt) => (validity ? ofClient(validity, writtenAt) : []))
        : keep(await read(client.file, first), ofClient)),
    )
    const ofKubelet = client?.file === undefined ? kubelet : dirname(client.file)
    const signed = await read(join(ofKubelet, 'kubelet-server-current.pem'), first)
    const own = signed ? undefined : await read(join(ofKubelet, 'kubelet.crt'), parseCertificates)
    const server = { name: kubeletNames.server, renewedBy: 'none' } as const
    certificates.push(
      ...keep(signed, (validity, writtenAt) => [{ ...server, authority: 'ca', ...validity, writtenAt }]),
      ...keep(own, ([validity, authority], writtenAt) => {
        if (authority) authorities.push({ name: kubeletNames.authority, ...authority, isOfCluster: false })
        return [{ ...server, authority: kubeletNames.authority, ...validity, writtenAt }]
      }),
    )
    return { authorities, certificates, unreadable }
  }
}

const first = (text: string): Validity => parseCertificates(text)[0]
const embedded = (text: string): Validity => first(parseClient(text).certificate ?? '')

/** The kubeconfig of the kubelet names a file that it rotates; what `kubeadm` makes at first has the certificate in itself. */
function clientOfKubelet(text: string): { readonly file?: string; readonly embedded?: Validity } {
  const { file, certificate } = parseClient(text)
  if (file !== undefined) return { file }
  return { embedded: first(certificate ?? '') }
}
