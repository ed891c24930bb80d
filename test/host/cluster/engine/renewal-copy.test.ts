import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { KnownCertificate } from '../../../../src/cluster/engine/certificates.ts'
import {
  copyForRenewal,
  noteRenewal,
  putBackDamaged,
  readRenewal,
  removeRenewal,
} from '../../../../src/cluster/engine/renew.ts'

let home: string
let files: readonly KnownCertificate[]
const file = (name: string) => join(home, name)
const paths = () => ({ renewal: file('kubeadm/renewal') })
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'edgehostd-renewal-'))
  mkdirSync(file('kubeadm'))
  files = [
    { name: 'apiserver', authority: 'ca', file: file('apiserver.crt'), key: file('apiserver.key') },
    { name: 'etcd-server', authority: 'etcd-ca', file: file('etcd.crt'), key: file('etcd.key') },
    { name: 'admin.conf', authority: 'ca', file: file('admin.conf') },
  ]
  make('apiserver')
  make('other')
  const data = (name: string) => Buffer.from(text(name)).toString('base64')
  writeFileSync(
    file('admin.conf'),
    `users:\n- user:\n    client-certificate-data: ${data('other.crt')}\n    client-key-data: ${data('other.key')}\n`,
    { mode: 0o600 },
  )
})
afterEach(() => rmSync(home, { recursive: true }))

const text = (name: string) => readFileSync(file(name), 'utf8')
function make(name: string) {
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync(
    'openssl',
    [...args, '-keyout', file(`${name}.key`), '-out', file(`${name}.crt`), '-days', '9', '-subj', '/CN=x'],
    { stdio: 'ignore' },
  )
}

it('what a power cut left half written is put back, and what is whole stays', async () => {
  const before = [text('apiserver.crt'), text('apiserver.key'), text('admin.conf')]
  await copyForRenewal(paths(), files)
  expect(await putBackDamaged(paths(), files)).toEqual([])
  for (const [damaged, content] of [
    ['apiserver.crt', ''],
    ['apiserver.key', text('other.key')],
    ['admin.conf', text('admin.conf').slice(0, 300)],
  ] as const) {
    writeFileSync(file(damaged), content)
    const [name] = damaged.split('.')
    expect(await putBackDamaged(paths(), files), damaged).toEqual([
      name === 'admin' ? damaged : 'apiserver.crt',
    ])
    expect([text('apiserver.crt'), text('apiserver.key'), text('admin.conf')]).toEqual(before)
  }
  // A renewed pair is whole.
  make('apiserver')
  expect(await putBackDamaged(paths(), files)).toEqual([])
  expect(text('apiserver.crt')).not.toBe(before[0])
  for (const secret of ['apiserver.key', 'admin.conf']) expect(statSync(file(secret)).mode & 0o077).toBe(0)
})

it('the copy has private keys: its folder is for root alone, and goes with the renewal', async () => {
  await copyForRenewal(paths(), files)
  expect(statSync(paths().renewal).mode & 0o777).toBe(0o700)
  await removeRenewal(paths())
  expect(existsSync(paths().renewal)).toBe(false)
})

it('a renewal was begun when its note is there; a copy without one is a copy that was cut off', async () => {
  expect(await readRenewal(paths())).toBeUndefined()
  await copyForRenewal(paths(), files)
  expect(await readRenewal(paths())).toBeUndefined()
  const note = { phase: 'copied', old: ['a', 'b'], withKubelet: true } as const
  await noteRenewal(paths(), note)
  expect(await readRenewal(paths())).toEqual(note)
  for (const damaged of ['{', '{"phase":"over"}', 'null']) {
    writeFileSync(join(paths().renewal, 'note.json'), damaged)
    expect(await readRenewal(paths()), damaged).toBeUndefined()
  }
})
