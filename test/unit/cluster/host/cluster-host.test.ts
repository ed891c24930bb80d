import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { addressUnitText } from '../../../../src/cluster/host/address.ts'
import { createClusterHost } from '../../../../src/cluster/host/create-cluster-host.ts'
import { emptyHost, noSetting, type Observed } from '../../../../src/cluster/loop/observed.ts'
import type { DesiredState } from '../../../../src/cluster/desired/desired-state.ts'
import { createHostFiles } from '../../../../src/host/files.ts'

const virtualAddress = { address: '10.77.0.50', networkInterface: 'eth0' }
const wantedWith = (virtual: DesiredState['node']['virtualAddress']): DesiredState => ({
  ...{ uid: 'u', name: 'plant', generation: 1, folder: '/', packs: [] },
  settings: { ntpServers: [], sshKeys: [] },
  kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: 'networks', stages: [] },
  node: {
    ...{ name: 'edge-1', address: '10.77.0.11', endpoint: '10.77.0.50', poolName: 'control' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
    ...(virtual ? { virtualAddress: virtual } : {}),
  },
})
const wanted = wantedWith(virtualAddress)
const observed = (isHostRecorded: boolean, isAddressHeld: boolean): Observed => ({
  ...emptyHost,
  ...{ isHostRecorded, isAddressHeld },
})

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'edgehostd-cluster-host-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
})
async function put(path: string, text: string) {
  await mkdir(dirname(join(root, path)), { recursive: true })
  await writeFile(join(root, path), text)
}
const host = () =>
  createClusterHost({
    ...{ stateDirectory: '/var/lib/edgehostd', files: createHostFiles(root) },
    ...{ architecture: 'amd64', cores: 2, now: () => 0, monotonic: () => 0 },
    ...{ sshAccount: 'root', stepProgram: '/nowhere/step.cjs' },
    runner: { run: () => Promise.reject(new Error('no program is run')) },
    privileged: { run: () => Promise.reject(new Error('no program is run')) },
  })
const { signal } = new AbortController()

it('the host is recorded once, before anything else of it is changed', () => {
  expect(host().recordSteps(observed(true, false))).toEqual([])
  expect(host().recordSteps(observed(false, false))).toMatchObject([
    {
      key: 'record-host',
      work: { action: 'record-host', order: { file: '/var/lib/edgehostd/cluster/host-record.json' } },
    },
  ])
})

it('an address is held where one is wanted and is not held', () => {
  expect(host().addressSteps(wanted, observed(true, true))).toEqual([])
  expect(host().addressSteps(wantedWith(undefined), observed(true, false))).toEqual([])
  expect(host().addressSteps(wanted, observed(true, false))).toMatchObject([
    { key: 'hold-address', work: { action: 'hold-address', order: virtualAddress } },
  ])
})

it('the deletion gives the address up and restores the host, until no record is left', () => {
  expect(host().restoreSteps(wanted, observed(false, true))).toEqual([])
  expect(host().restoreSteps(wanted, observed(true, true))).toMatchObject([
    { key: 'drop-address', work: { action: 'drop-address' } },
    {
      key: 'restore-host',
      work: {
        action: 'restore-host',
        order: { file: '/var/lib/edgehostd/cluster/host-record.json', config: 'networks' },
      },
    },
  ])
})

it('without a virtual address none has to be held', async () => {
  expect(await host().observe(wantedWith(undefined), signal)).toEqual({
    isHostRecorded: false,
    isAddressHeld: true,
    settings: { ntpServers: noSetting, sshKeys: noSetting },
  })
})

it('an address is held if this host has it and the unit of it is enabled', async () => {
  const held = async () => (await host().observe(wanted, signal)).isAddressHeld
  const unit = '/etc/systemd/system/edgehostd-vip.service'
  expect(await held()).toBe(false)
  await put(unit, addressUnitText(virtualAddress))
  await put('/proc/net/fib_trie', 'Local:\n           |-- 10.77.0.50\n              /32 host LOCAL\n')
  expect(await held()).toBe(false)
  await mkdir(join(root, '/etc/systemd/system/multi-user.target.wants'))
  await symlink(unit, join(root, '/etc/systemd/system/multi-user.target.wants/edgehostd-vip.service'))
  expect(await held()).toBe(true)
  await put(unit, addressUnitText({ ...virtualAddress, networkInterface: 'eth1' }))
  expect(await held()).toBe(false)
  await put(unit, addressUnitText(virtualAddress))
  await put('/proc/net/fib_trie', '')
  expect(await held()).toBe(false)
})

it('a record counts, even one that cannot be read: the restore deals with it', async () => {
  await put('/var/lib/edgehostd/cluster/host-record.json', '{"ver')
  expect(await host().observe(wanted, signal)).toMatchObject({ isHostRecorded: true })
})

it('the posted address of the control plane is judged by the networks of this host', async () => {
  await put(
    '/proc/net/route',
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n',
  )
  expect(await host().placeEndpoint('10.77.0.50')).toEqual({ kind: 'virtual', virtualAddress })
  expect(await host().placeEndpoint('10.78.0.50')).toMatchObject({ kind: 'refused' })
})
