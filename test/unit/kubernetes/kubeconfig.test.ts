import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { parseKubeconfig } from '../../../src/kubernetes/connection.ts'

const pem = (what: string) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** As kubeadm writes it. */
const config = () => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'admin@kubernetes',
  clusters: [
    { name: 'other', cluster: { server: 'https://192.0.2.9:6443' } },
    {
      name: 'kubernetes',
      cluster: {
        'certificate-authority-data': base64(pem('CERTIFICATE')),
        server: 'https://192.0.2.1:6443',
      } as Record<string, string>,
    },
  ],
  contexts: [{ name: 'admin@kubernetes', context: { cluster: 'kubernetes', user: 'admin' } }],
  users: [
    {
      name: 'admin',
      user: {
        'client-certificate-data': base64(pem('CERTIFICATE')),
        'client-key-data': base64(pem('EC PRIVATE KEY')),
      } as Record<string, string>,
    },
  ],
})

describe('a kubeconfig', () => {
  it('gives the server and the certificates of its current context', async () => {
    expect(await parseKubeconfig(stringify(config()))).toEqual({
      server: 'https://192.0.2.1:6443',
      ca: pem('CERTIFICATE'),
      cert: pem('CERTIFICATE'),
      key: pem('EC PRIVATE KEY'),
    })
  })

  it('may be JSON, and may name the server that is expected behind an address and a path', async () => {
    const named = config()
    Object.assign(named.clusters[1]!.cluster, {
      server: 'https://[2001:db8::1]:6443/k8s/',
      'tls-server-name': 'kubernetes',
    })
    const access = await parseKubeconfig(JSON.stringify(named))
    expect(access).toMatchObject({ server: 'https://[2001:db8::1]:6443/k8s', serverName: 'kubernetes' })
  })

  it('that is cut off is refused in one line', async () => {
    await expect(parseKubeconfig('apiVersion: v1\nclusters: [{name: "kuber')).rejects.toThrow(
      /^the kubeconfig is not YAML: .+$/,
    )
  })

  it.each<[string, (text: ReturnType<typeof config>) => unknown]>([
    ['the kubeconfig is not a mapping', () => 'hello'],
    ['has no entry of contexts with the name ""', (it) => ({ ...it, 'current-context': undefined })],
    ['has no entry of contexts with the name "x"', (it) => ({ ...it, 'current-context': 'x' })],
    ['has no entry of clusters with the name "kubernetes"', (it) => ({ ...it, clusters: [] })],
    ['has no entry of users with the name "admin"', (it) => ({ ...it, users: [{ name: 'admin' }] })],
    [
      'not an https address',
      (it) => ({ ...it, clusters: [{ name: 'kubernetes', cluster: { server: 'http://192.0.2.1' } }] }),
    ],
    [
      'no PEM in certificate-authority-data',
      (it) => ({ ...it, clusters: [{ name: 'kubernetes', cluster: { server: 'https://192.0.2.1' } }] }),
    ],
    [
      'no PEM in client-certificate-data',
      (it) => ({ ...it, users: [{ name: 'admin', user: { 'client-certificate': '/etc/x.pem' } }] }),
    ],
  ])('is refused: %s', async (message, change) => {
    await expect(parseKubeconfig(stringify(change(config())))).rejects.toThrow(message)
  })
})
