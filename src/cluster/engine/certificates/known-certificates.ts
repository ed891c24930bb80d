import { join } from 'node:path'
import { kubernetesFiles } from '../paths.ts'

/** A certificate authority of kubeadm, by the name that `kubeadm certs check-expiration` gives it. */
export type AuthorityName = 'ca' | 'etcd-ca' | 'front-proxy-ca'

/** A certificate that kubeadm renews, and where it is. */
export interface KnownCertificate {
  /** As `kubeadm certs check-expiration` names it. */
  readonly name: string
  readonly authority: AuthorityName
  /** A file of PEM, or a kubeconfig that has the certificate in itself. */
  readonly file: string
  /** File of its private key; undefined for a kubeconfig, which has that too. */
  readonly key?: string
}

export interface KnownAuthority {
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
    ...{ name, authority, file: join(folder, `${file}.crt`), key: join(folder, `${file}.key`) },
  })),
]

/** @param folder of the certificates */
export const knownAuthorities = (folder: string): readonly KnownAuthority[] =>
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
