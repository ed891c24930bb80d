import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join, dirname } from 'node:path'
import { kubernetesFiles } from './paths.ts'
import { isThere } from '../../system/files.ts'

/** A certificate that has to be made anew. */
export interface StaleCertificate {
  /** Phase of `kubeadm init phase certs`. */
  readonly phase: string
  /** To be removed before; kubeadm makes only missing files. */
  readonly files: readonly string[]
  /** The name that it lacks. */
  readonly name: string
}

const serving = [
  { phase: 'apiserver', file: 'apiserver', at: ['apiServer', 'certSANs'] },
  { phase: 'etcd-server', file: 'etcd/server', at: ['etcd', 'local', 'serverCertSANs'] },
  { phase: 'etcd-peer', file: 'etcd/peer', at: ['etcd', 'local', 'peerCertSANs'] },
] as const

/** @param file for `kubeadm init` @returns the certificates of servers that lack a name of it, and missing ones */
export async function staleCertificates(file: string): Promise<readonly StaleCertificate[]> {
  const { certificatesFolder, documentsOf, mapAt } = await import('./pack-config.ts')
  const documents = documentsOf(await readFile(file, 'utf8'))
  const clusterConfiguration = documents.find(({ kind }) => kind === 'ClusterConfiguration') ?? {}
  const folder = certificatesFolder({ clusterConfiguration })
  const found = await Promise.all(
    serving.map(async ({ phase, file: name, at }) => {
      const given = mapAt(clusterConfiguration, ...at.slice(0, -1))[at.at(-1) ?? '']
      const names = Array.isArray(given) ? given.map(String) : []
      const text = await readFile(join(folder, `${name}.crt`)).catch(() => undefined)
      const isExternal = phase.startsWith('etcd') && mapAt(clusterConfiguration, 'etcd', 'external').endpoints
      if (isExternal) return []
      const lacking = text === undefined ? 'this host' : names.find((each) => !hasName(text, each))
      const files = [`${name}.crt`, `${name}.key`].map((each) => join(folder, each))
      return lacking === undefined ? [] : [{ phase, files, name: lacking }]
    }),
  )
  return found.flat()
}

/** Whether a certificate is for a name or an address. Wildcards have to be in it as they are. */
export function hasName(certificate: Buffer, name: string): boolean {
  const { subjectAltName = '' } = new X509Certificate(certificate)
  if (isIP(name) !== 0) return new X509Certificate(certificate).checkIP(name) !== undefined
  return subjectAltName.split(', ').includes(`DNS:${name}`)
}

/** Validity period of a certificate, milliseconds since 1970. */
interface Validity {
  readonly issuedAt: number
  readonly expiresAt: number
}

const block = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** Certificates of a text of PEM, in their order; the first is the file's. @throws Error naming the problem, without any of the text */
function parseCertificates(text: string): readonly [Validity, ...Validity[]] {
  const [first, ...more] = text.match(block) ?? []
  if (first === undefined) throw new Error('it has no certificate')
  return [validityOf(first), ...more.map(validityOf)]
}

function validityOf(pem: string): Validity {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    throw new Error('it has a certificate that cannot be read')
  }
  const [issuedAt, expiresAt] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (Number.isNaN(issuedAt) || Number.isNaN(expiresAt)) throw new Error('it has a certificate without dates')
  return { issuedAt, expiresAt }
}

/** Client certificate of a kubeconfig. */
interface ClientOfKubeconfig {
  /** PEM, where it is in the file. */
  readonly certificate?: string
  /** PEM, where it is in the file. */
  readonly key?: string
  /** File of the certificate, where it is not in the kubeconfig. */
  readonly file?: string
}

/**
 * Reads the client of a kubeconfig as kubeadm writes it: in block style, with one user. Without a parser of YAML, since it is read where
 * none is loaded.
 */
export function parseClient(text: string): ClientOfKubeconfig {
  const field = (name: string) =>
    new RegExp(`^\\s*${name}:\\s*["']?([^\\s"']+)["']?\\s*$`, 'm').exec(text)?.[1]
  const decoded = (name: string) => {
    const given = field(name)
    return given === undefined ? undefined : Buffer.from(given, 'base64').toString('latin1')
  }
  const [certificate, key] = [decoded('client-certificate-data'), decoded('client-key-data')]
  const file = field('client-certificate')
  return {
    ...(certificate === undefined ? {} : { certificate }),
    ...(key === undefined ? {} : { key }),
    ...(file === undefined ? {} : { file }),
  }
}

/** Whether two texts of PEM are a certificate and its private key. */
export function isPair(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

/** A certificate authority of kubeadm, by the name that `kubeadm certs check-expiration` gives it. */
type AuthorityName = 'ca' | 'etcd-ca' | 'front-proxy-ca'

/** A certificate that kubeadm renews, and its files. */
export interface KnownCertificate {
  /** As `kubeadm certs check-expiration` names it. */
  readonly name: string
  readonly authority: AuthorityName
  /** A file of PEM, or a kubeconfig that has the certificate in itself. */
  readonly file: string
  /** File of its private key; undefined for a kubeconfig, which has that too. */
  readonly key?: string
}

interface KnownAuthority {
  readonly name: AuthorityName
  readonly file: string
  /** Without it kubeadm cannot sign: the authority is an external one. */
  readonly key: string
}

const ofPki: readonly (readonly [name: string, authority: AuthorityName, file: string])[] = [
  ['apiserver', 'ca', 'apiserver'],
  ['apiserver-kubelet-client', 'ca', 'apiserver-kubelet-client'],
  ['apiserver-etcd-client', 'etcd-ca', 'apiserver-etcd-client'],
  ['etcd-healthcheck-client', 'etcd-ca', 'etcd/healthcheck-client'],
  ['etcd-peer', 'etcd-ca', 'etcd/peer'],
  ['etcd-server', 'etcd-ca', 'etcd/server'],
  ['front-proxy-client', 'front-proxy-ca', 'front-proxy-client'],
]

const kubeconfigs = ['admin.conf', 'controller-manager.conf', 'scheduler.conf', 'super-admin.conf']

/** @param folder of the certificates, by default `/etc/kubernetes/pki` @param configs folder of the kubeconfigs */
export const knownCertificates = (
  folder: string,
  configs: string = kubernetesFiles.folder,
): readonly KnownCertificate[] => [
  ...kubeconfigs.map((name) => ({ name, authority: 'ca' as const, file: join(configs, name) })),
  ...ofPki.map(([name, authority, file]) => ({
    name,
    authority,
    file: join(folder, `${file}.crt`),
    key: join(folder, `${file}.key`),
  })),
]

/** @param folder of the certificates */
const knownAuthorities = (folder: string): readonly KnownAuthority[] =>
  (
    [
      ['ca', 'ca'],
      ['etcd-ca', 'etcd/ca'],
      ['front-proxy-ca', 'front-proxy-ca'],
    ] as const
  ).map(([name, file]) => ({ name, file: join(folder, `${file}.crt`), key: join(folder, `${file}.key`) }))

/** Names of the certificates of the kubelet: it renews the one of the client by itself, where it is set up so, and kubeadm renews none. */
export const kubeletNames = {
  client: 'kubelet-client',
  server: 'kubelet-server',
  /** Made by the kubelet itself, where Kubernetes does not sign the certificate of its server. */
  authority: 'kubelet-server-ca',
} as const

const usual = kubernetesFiles.certificates

/** Folder of the certificates of the control plane. @param config text of the file for `kubeadm init` */
export async function certificatesFolderIn(config: string): Promise<string> {
  // The parser of YAML is loaded only where there is something to read.
  if (!config.includes('certificatesDir')) return usual
  const { documentsOf } = await import('./pack-config.ts')
  const folders = documentsOf(config).map(({ certificatesDir }) => certificatesDir)
  const given = folders.find((each) => typeof each === 'string' && each !== '')
  return typeof given === 'string' ? given : usual
}

/** Certificates of Kubernetes on this host. */
export interface SeenCertificates {
  readonly authorities: readonly SeenAuthority[]
  readonly certificates: readonly SeenCertificate[]
  /** Unreadable files, a sentence each. */
  readonly unreadable: readonly string[]
}

export interface SeenAuthority extends Validity {
  readonly name: string
  /** Whether it is one of kubeadm, on which the cluster depends; the other is the kubelet's. */
  readonly isOfCluster: boolean
}

export interface SeenCertificate extends Validity {
  readonly name: string
  /** Name of its authority. */
  readonly authority: string
  /** Time of its file: kubeadm may keep `issuedAt` in a renewal. */
  readonly writtenAt: number
  /**
   * Its renewer: kubeadm, the kubelet for its client, or the owner of the key of an authority that is not on this host. `none`: the control
   * plane does not depend on it, as the kubelet's server certificate.
   */
  readonly renewedBy: 'kubeadm' | 'kubelet' | 'external' | 'none'
}

export const noCertificates: SeenCertificates = { authorities: [], certificates: [], unreadable: [] }

const dayMs = 86_400_000
const monthMs = 30 * dayMs
const yearMs = 365 * dayMs

/**
 * Renewal time of a certificate: 30 days before its end, or when a third of a shorter life is left. The kubelet renews its client
 * certificate when 10 to 30 % of its life is left, so it is made anew only when less than that is left. Pure. The life begins when the file
 * was written, since kubeadm may keep the date of the first issue.
 */
export function renewalTimeOf({
  issuedAt,
  expiresAt,
  writtenAt,
  renewedBy,
}: Pick<SeenCertificate, 'issuedAt' | 'expiresAt' | 'writtenAt' | 'renewedBy'>): number {
  const lifeMs = Math.max(0, expiresAt - Math.max(issuedAt, writtenAt))
  return expiresAt - (renewedBy === 'kubelet' ? lifeMs / 20 : Math.min(monthMs, lifeMs / 3))
}

/** Whether a certificate has ended, or begins later. */
const isInvalid = ({ issuedAt, expiresAt }: Validity, now: number) => now < issuedAt || now >= expiresAt

/**
 * Whether the clock of this host may be believed: it is not before the authorities of the cluster were made, as on a host without a battery
 * until it asked for the time. Certificates renewed then would have ended when the clock is right.
 */
const isClockRight = ({ authorities }: SeenCertificates, now: number) =>
  authorities.every(({ isOfCluster, issuedAt }) => !isOfCluster || now >= issuedAt)

/** Certificates that edgehostd has to renew now. @param now milliseconds since 1970 */
export const dueCertificates = (seen: SeenCertificates, now: number): readonly SeenCertificate[] =>
  isClockRight(seen, now)
    ? seen.certificates.filter(
        (each) => isRenewedHere(each) && (isInvalid(each, now) || now >= renewalTimeOf(each)),
      )
    : []

const isRenewedHere = ({ renewedBy }: SeenCertificate) => renewedBy === 'kubeadm' || renewedBy === 'kubelet'

/** State of the certificates at a time. */
export interface CertificateState {
  /** They have to be renewed now. */
  readonly isRenewalDue: boolean
  /** One has ended, or begins later, as after the clock was set back: without a renewal the control plane does not work. */
  readonly isRenewalOverdue: boolean
  /** Certificates that end soon, or cannot be read, and are not renewed by themselves; sentences for operators. */
  readonly endingCertificates: readonly string[]
  /** Authorities that end within a year, or have less than a third of a shorter life left; sentences for operators. */
  readonly endingAuthorities: readonly string[]
}

/** @param now milliseconds since 1970 */
export function stateOf(seen: SeenCertificates, now: number): CertificateState {
  const due = dueCertificates(seen, now)
  return {
    isRenewalDue: due.length > 0,
    isRenewalOverdue: due.some((each) => isInvalid(each, now)),
    endingCertificates: [
      ...seen.unreadable,
      ...seen.certificates
        .filter((each) => each.renewedBy === 'external' && now >= renewalTimeOf(each))
        .map(endingText),
    ],
    endingAuthorities: seen.authorities
      .filter((each) => each.isOfCluster && now >= warningTimeOf(each))
      .map(
        ({ name, expiresAt }) =>
          `the certificate authority ${name} ends at ${timeOf(expiresAt)} and is not renewed; before that, create the cluster again, or replace the authority by hand`,
      ),
  }
}

const endingText = ({ name, authority, expiresAt }: SeenCertificate) =>
  `the certificate ${name} ends at ${timeOf(expiresAt)} and is not renewed by edgehostd: the private key of its authority ${authority} is not on this host; renew it where that is`

const warningTimeOf = ({ issuedAt, expiresAt }: Validity) =>
  expiresAt - Math.min(yearMs, Math.max(0, expiresAt - issuedAt) / 3)

const timeOf = (at: number) => new Date(at).toISOString()

/** Time of the next renewal by edgehostd itself, milliseconds since 1970; undefined where nothing can be renewed. */
export function nextRenewalAt({ certificates }: SeenCertificates): number | undefined {
  const times = certificates.filter(({ renewedBy }) => renewedBy === 'kubeadm').map(renewalTimeOf)
  return times.length === 0 ? undefined : Math.min(...times)
}

interface CertificateReaderOptions {
  /** File for `kubeadm init`, which names the folder of the certificates. */
  readonly kubeadmConfig: string
  /** Folder of the kubeconfigs, by default kubeadm's. */
  readonly configs?: string
  /** Folder of the certificates of the kubelet, where its kubeconfig does not name another. */
  readonly kubelet?: string
  /** By default from the disk. */
  readonly readText?: (path: string) => Promise<string>
}

/** Reads the certificates of Kubernetes on this host; a file is read again only when it has changed. */
export type ReadCertificates = () => Promise<SeenCertificates>

/** Content of a file, or its problem; undefined where it is not there. */
type Reading<T> = { readonly value: T; readonly writtenAt: number } | { readonly problem: string } | undefined

export function createCertificateReader({
  kubeadmConfig,
  configs = kubernetesFiles.folder,
  kubelet = '/var/lib/kubelet/pki',
  readText = (path) => readFile(path, 'utf8'),
}: CertificateReaderOptions): ReadCertificates {
  /** By path: the parsed file, and its state then. */
  const known = new Map<string, { readonly mark: string; readonly reading: Reading<never> }>()

  async function read<T>(path: string, parse: (text: string) => T | Promise<T>): Promise<Reading<T>> {
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
    if (before?.mark === mark) return before.reading
    let reading: Reading<T>
    try {
      reading = { value: await parse(await readText(path)), writtenAt }
    } catch (error) {
      reading = { problem: `${path} cannot be used: ${(error as Error).message}` }
    }
    known.set(path, { mark, reading: reading as Reading<never> })
    return reading
  }

  return async () => {
    const given = await read(kubeadmConfig, certificatesFolderIn)
    const folder = given && 'value' in given ? given.value : await certificatesFolderIn('')
    const unreadable: string[] = []
    const keep = <T, S>(
      reading: Reading<T>,
      make: (value: T, writtenAt: number) => readonly S[],
    ): readonly S[] => {
      if (!reading) return []
      if ('value' in reading) return make(reading.value, reading.writtenAt)
      unreadable.push(reading.problem)
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
            name,
            authority,
            ...validity,
            writtenAt,
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

/** The kubeconfig of the kubelet names a file that it rotates; the first one of `kubeadm` has the certificate in itself. */
function clientOfKubelet(text: string): { readonly file?: string; readonly embedded?: Validity } {
  const { file, certificate } = parseClient(text)
  if (file !== undefined) return { file }
  return { embedded: first(certificate ?? '') }
}
