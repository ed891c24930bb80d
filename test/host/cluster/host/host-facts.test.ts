import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism, release, tmpdir, totalmem } from 'node:os'
import { expect, it } from 'vitest'
import { readHostFacts } from '../../../../src/cluster/host/host-facts.ts'
import { createHostPreflight, readLacking } from '../../../../src/cluster/host/host-preflight.ts'
import type { DesiredState } from '../../../../src/cluster/desired/desired-state.ts'
import { createHostFiles } from '../../../../src/host/files.ts'
import { createRunner } from '../../../../src/system/runner.ts'

const options = {
  files: createHostFiles(),
  runner: createRunner(),
  architecture: 'amd64',
  cores: availableParallelism(),
  folders: [tmpdir(), '/does-not-exist'].map((folder) => ({ folder, neededBytes: 1 })),
  privileged: createRunner(),
  now: () => Date.now(),
}

async function listen(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return { port, close: () => new Promise((resolve) => server.close(() => resolve())) }
}

const wantedWith = (config: string): DesiredState => ({
  ...{ uid: 'u', name: 'plant', generation: 1, folder: '/', packs: [] },
  settings: { ntpServers: [], sshKeys: [] },
  kubernetes: { pack: 'edge-k8s', version: '1.34.4', config, stages: [] },
  node: {
    ...{ name: 'edge-1', address: '192.0.2.1', endpoint: '192.0.2.1', poolName: 'control' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
  },
})

/** A container without delegation has cgroups of version 2 without any controller. */
function cgroupsOfMachine() {
  const unified = '/sys/fs/cgroup/cgroup.controllers'
  if (existsSync(unified))
    return { version: 2, controllers: new Set(readFileSync(unified, 'utf8').match(/\S+/g)) }
  const enabled = readFileSync('/proc/cgroups', 'utf8').match(/^\w+(?=.*\t1$)/gm)
  return { version: 1, controllers: new Set(enabled) }
}

it('the facts are those of this machine', async () => {
  const server = await listen()
  const facts = await readHostFacts(options)
  await server.close()
  expect(facts.kernel).toBe(release())
  expect(facts.memoryBytes).toBe(totalmem())
  expect(facts.ports).toContain(server.port)
  expect(facts.ports).not.toContain(1)
  expect(facts.programs).toContain('sh')
  expect(facts.cgroups).toEqual(cgroupsOfMachine())
  expect(facts.networks.addresses).toContain('127.0.0.1')
  expect(facts.spaces).toMatchObject([{ folder: tmpdir() }])
  expect(facts.spaces[0]?.freeBytes).toBeGreaterThan(0)
})

it('a port that another program has is named with the port of the pack', async () => {
  const server = await listen()
  const check = createHostPreflight(options)
  const config = `initConfiguration: {localAPIEndpoint: {bindPort: ${server.port}}}`
  const found = await check(wantedWith(config), new AbortController().signal)
  await server.close()
  expect(found.filter(({ code }) => code === 'PortTaken').map(({ message }) => message)).toContain(
    `another program listens at TCP port ${server.port}, which the cluster needs; ss -ltnp 'sport = :${server.port}' names it`,
  )
})

it('a check that cannot be made is a finding of its own, beside the others', async () => {
  const files = {
    ...options.files,
    text: async (path: string) => {
      if (path === '/proc/meminfo') throw new Error('the disk does not answer')
      return options.files.text(path)
    },
  }
  const check = createHostPreflight({ ...options, files })
  expect(await check(wantedWith(''), new AbortController().signal)).toEqual([
    {
      code: 'CheckFailed',
      severity: 'error',
      message: 'this host could not be checked: the disk does not answer',
    },
  ])
})

it('what a host lacks is said without a definition: programs that are missing, and no name server', async () => {
  const bare = {
    ...options.files,
    text: async (path: string) => (path === '/etc/resolv.conf' ? '' : options.files.text(path)),
    names: async (path: string) => {
      const names = await options.files.names(path)
      return names.filter((name) => name !== 'conntrack' && name !== 'systemd-resolved.service')
    },
  }
  const found = await readLacking({ ...options, files: bare }, undefined)
  expect(found.map(({ message }) => message).join('\n')).toContain('conntrack')
  expect(found.map(({ code }) => code)).toContain('ResolverUnusable')
  // Firewall and clock are matters of the pre-flight: their warnings would stay for years.
  expect(found.map(({ code }) => code)).not.toContain('ClockNotSynchronized')
})
