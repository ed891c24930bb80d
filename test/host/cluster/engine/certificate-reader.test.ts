import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createCertificateReader } from '../../../../src/cluster/engine/certificates.ts'

const fixtures = join(import.meta.dirname, '../../../fixtures/kubeadm')

let home: string
let read: ReturnType<typeof createCertificateReader>
const readText = vi.fn((path: string) => readFile(path, 'utf8'))
const file = (...names: string[]) => join(home, ...names)
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'edgehostd-certificates-'))
  mkdirSync(file('kubelet'))
  writeFileSync(file('init.yaml'), `certificatesDir: ${file('pki')}\n`)
  read = createCertificateReader({
    ...{ kubeadmConfig: file('init.yaml'), configs: home, kubelet: file('kubelet') },
    readText,
  })
})
afterEach(() => rmSync(home, { recursive: true }))

const place = (version: string) =>
  cpSync(join(fixtures, `certificates-${version}`), home, { recursive: true })
const giveKeys = () => {
  for (const name of ['ca', 'etcd/ca', 'front-proxy-ca']) writeFileSync(file('pki', `${name}.key`), 'secret')
}

/** Makes a certificate of its own for so many days. */
function make(path: string, days: number, subject: string): string {
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync(
    'openssl',
    [...args, '-keyout', `${path}.key`, '-out', path, '-days', String(days), '-subj', subject],
    { stdio: 'ignore' },
  )
  return readFileSync(path, 'utf8')
}

describe.each(['1.33.13', '1.34.4'])('the certificates of kubeadm %s', (version) => {
  it('are read from its files and kubeconfigs, each below its authority', async () => {
    place(version)
    giveKeys()
    const { authorities, certificates, unreadable } = await read()
    expect(unreadable).toEqual([])
    expect(authorities.map(({ name }) => name)).toEqual(['ca', 'etcd-ca', 'front-proxy-ca'])
    expect(
      Object.fromEntries(
        ['ca', 'etcd-ca', 'front-proxy-ca'].map((each) => [
          each,
          certificates.filter(({ authority }) => authority === each).map(({ name }) => name),
        ]),
      ),
    ).toEqual({
      ca: [
        ...['admin.conf', 'controller-manager.conf', 'scheduler.conf', 'super-admin.conf'],
        ...['apiserver', 'apiserver-kubelet-client', 'kubelet-client'],
      ],
      'etcd-ca': ['apiserver-etcd-client', 'etcd-healthcheck-client', 'etcd-peer', 'etcd-server'],
      'front-proxy-ca': ['front-proxy-client'],
    })
    for (const { name, issuedAt, expiresAt, renewedBy } of certificates) {
      // Ten minutes, and five before: kubeadm lets clocks differ.
      expect((expiresAt - issuedAt) / 60_000, name).toBeCloseTo(15, 1)
      expect(renewedBy, name).toBe(name === 'kubelet-client' ? 'kubelet' : 'kubeadm')
    }
    const [ca] = authorities
    expect((ca!.expiresAt - ca!.issuedAt) / 86_400_000).toBeCloseTo(3_650, 1)
  })

  it('of an authority without a key on this host are renewed elsewhere', async () => {
    place(version)
    giveKeys()
    rmSync(file('pki/etcd/ca.key'))
    const { certificates } = await read()
    const external = certificates.filter(({ renewedBy }) => renewedBy === 'external')
    expect(external.map(({ authority }) => authority)).toEqual(Array(4).fill('etcd-ca'))
  })
})

it('a host without a cluster has none', async () => {
  rmSync(file('init.yaml'))
  expect(await read()).toEqual({ authorities: [], certificates: [], unreadable: [] })
})

it('reads a file again when it has changed, and only then', async () => {
  place('1.34.4')
  const first = await read()
  readText.mockClear()
  expect(await read()).toEqual(first)
  expect(readText).not.toHaveBeenCalled()
  const before = first.certificates.find(({ name }) => name === 'etcd-peer')!
  make(file('pki/etcd/peer.crt'), 60, '/CN=peer')
  const after = (await read()).certificates.find(({ name }) => name === 'etcd-peer')!
  expect(readText).toHaveBeenCalledTimes(1)
  expect((after.expiresAt - after.issuedAt) / 86_400_000).toBeCloseTo(60, 3)
  expect(after.writtenAt).toBeGreaterThan(before.writtenAt)
  // The time of the file is that of the issue, which kubeadm may keep.
  const time = new Date('2026-11-01T00:00:00Z')
  utimesSync(file('pki/etcd/peer.crt'), time, time)
  const touched = (await read()).certificates.find(({ name }) => name === 'etcd-peer')!
  expect(touched.writtenAt).toBe(time.getTime())
})

it('names files that cannot be used, without any of their text', async () => {
  place('1.34.4')
  writeFileSync(file('pki/apiserver.crt'), '')
  writeFileSync(file('admin.conf'), 'users: [hunter2]\n')
  const broken = readFileSync(file('pki/front-proxy-client.crt'), 'utf8').replace(/\n[A-Za-z0-9+/]/, '\nAAAA')
  writeFileSync(file('pki/front-proxy-client.crt'), broken)
  const { certificates, unreadable } = await read()
  expect(unreadable).toEqual([
    `${file('admin.conf')} cannot be used: it has no certificate`,
    `${file('pki/apiserver.crt')} cannot be used: it has no certificate`,
    `${file('pki/front-proxy-client.crt')} cannot be used: it has a certificate that cannot be read`,
  ])
  expect(certificates.map(({ name }) => name)).not.toContain('apiserver')
})

describe('the certificates of the kubelet', () => {
  it('are in the file that its kubeconfig names, once it rotates its client', async () => {
    place('1.34.4')
    make(file('kubelet/kubelet-client-current.pem'), 365, '/O=system:nodes/CN=system:node:plant')
    const users = `users:\n- name: default-auth\n  user:\n    client-certificate: ${file('kubelet/kubelet-client-current.pem')}\n`
    writeFileSync(file('kubelet.conf'), users)
    const client = (await read()).certificates.find(({ name }) => name === 'kubelet-client')!
    expect((client.expiresAt - client.issuedAt) / 86_400_000).toBeCloseTo(365, 3)
    expect(client).toMatchObject({ authority: 'ca', renewedBy: 'kubelet' })
  })

  it('of its server are below the authority that it made itself, which is in the same file', async () => {
    place('1.34.4')
    const text = make(file('server.crt'), 365, '/CN=plant') + make(file('own-ca.crt'), 366, '/CN=plant-ca')
    writeFileSync(file('kubelet/kubelet.crt'), text)
    const { authorities, certificates } = await read()
    expect(authorities.at(-1)).toMatchObject({ name: 'kubelet-server-ca', isOfCluster: false })
    expect(certificates.at(-1)).toMatchObject({
      ...{ name: 'kubelet-server', authority: 'kubelet-server-ca', renewedBy: 'none' },
    })
  })

  it('of its server are below the authority of Kubernetes, where that has signed it', async () => {
    place('1.34.4')
    make(file('kubelet/kubelet-server-current.pem'), 365, '/CN=plant')
    const { authorities, certificates } = await read()
    expect(authorities).toHaveLength(3)
    expect(certificates.at(-1)).toMatchObject({ name: 'kubelet-server', authority: 'ca' })
  })
})
