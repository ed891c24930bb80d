import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { documentsOf, mapAt } from './pack-config.ts'
import { certificatesFolder } from './fixed-settings.ts'

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
