import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ClusterVariables, SpectroCluster } from '../../../src/platform/clusters/schemas.ts'
import { createCtl, overSocket, type Ctl } from '../../support/ctl.ts'
import {
  clusterEntity,
  clusterProfile,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../../support/platform-clusters.ts'
import type { PlayedEdgeHost } from '../../support/played-edge-host.ts'
import { platformCtlProgram } from '../../support/programs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { minuteMs } from '../../support/turning-clock.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Record<string, string>
let folder: string
let socket: string
let ctl: Ctl
let profileUid: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'platform-ctl-'))
  socket = join(folder, 'api.sock')
  platform = await createTestPlatform({ socket })
  await platform.start()
  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  admin = await platform.signIn('root@plant.example', 'a long password')
  await uploadClusterPacks(platform, admin)
  profileUid = await importedProfile(platform, admin, clusterProfile('plant'))
  ctl = createCtl(platformCtlProgram())
})
afterAll(async () => {
  await platform.close()
  for (const each of [folder, ctl.home]) rmSync(each, { recursive: true, force: true })
})

const { run, ok, json } = overSocket(() => ({ ctl, socket }))

async function report(host: PlayedEdgeHost, method: 'PUT' | 'PATCH', path: string, payload: object) {
  const reply = await platform.app.inject({
    ...{ method, url: `/v1/spectroclusters/${path}`, payload, headers: { authorization: host.token } },
  })
  expect(reply.statusCode).toBe(204)
}
const beat = (host: PlayedEdgeHost, uid: string, body: object) =>
  report(host, 'PUT', `${uid}/heartbeat`, { agentVersion: '1.2.3', ...body })
const say = (host: PlayedEdgeHost, uid: string, status: string, reason: string, message: string) =>
  report(host, 'PATCH', `${uid}/status/conditions`, [
    { type: 'Wanted', status, reason, message, observedGeneration: 1 },
  ])

/** A host with a cluster of the same name. */
async function made(name: string) {
  const host = await joinedHost(platform, admin, { name })
  const args = ['--name', name, '--edge-host', name, '--profile', 'plant@1.0.0']
  return { host, uid: (await ok('cluster', 'create', ...args)).trim() }
}

describe('clusters', () => {
  it('are created by options, listed, shown, changed and deleted', async () => {
    const host = await joinedHost(platform, admin, { name: 'hall-b-7' })
    const secret = join(folder, 'secret')
    writeFileSync(secret, 'hunter-of-three\n')
    const args = ['--name', 'line-1', '--edge-host', 'hall-b-7', '--profile', 'plant', '--set', 'USER=paula']
    const given = [...args, '--set-file', `PASSWORD=${secret}`]
    expect(await ok('cluster', 'validate', ...given)).toMatch(/Checks: the cluster can be created/)
    const uid = (await ok('cluster', 'create', ...given)).trim()
    expect(await ok('cluster', 'list')).toMatch(/^line-1 +- +hall-b-7 +Pending +- +never +plant 1\.0\.0/m)
    const facts = await ok('cluster', 'show', 'line-1')
    expect(facts).toMatch(/Host: hall-b-7/)
    expect(facts).toMatch(/Wanted: number 1, of which the host has not said anything/)
    expect((await json<SpectroCluster>('cluster', 'show', uid)).metadata.name).toBe('line-1')
    const [declared] = await json<ClusterVariables>('cluster', 'values', 'line-1')
    expect(declared?.variables.map(({ value }) => value)).toEqual(['paula', '********'])
    expect(await ok('cluster', 'values', 'line-1')).toMatch(/^plant +USER +paula +paul/m)

    await ok('cluster', 'values', 'line-1', '--set', 'USER=otto')
    expect(await ok('cluster', 'values', 'line-1')).toMatch(/^plant +USER +otto/m)
    await importedProfile(platform, admin, clusterProfile('plant', '1.1.0'))
    const replaced = await run('cluster', 'profiles', 'line-1', '--profile', 'plant@1.1.0')
    expect(replaced).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('as number 3') as string })
    expect(await ok('cluster', 'profiles', 'line-1')).toMatch(/^plant +1\.1\.0 +cluster +edge-os 1\.0\.0/m)
    expect(await ok('cluster', 'values', 'line-1')).toMatch(/^plant +USER +otto/m)
    expect(await ok('cluster', 'settings', 'line-1')).toMatch(/NTP servers: none\n.*SSH keys: none/)
    const publicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICwOw/D1fytQduQYU7aI4yWuY4/BB4TXT0mvP7vLLrWC'
    const keyFile = join(folder, 'key.pub')
    writeFileSync(keyFile, `${publicKey} anna@plant\n`)
    await ok('cluster', 'settings', 'line-1', '--ntp', 'ntp.plant.example', '--ssh-key', keyFile)
    expect(await json('cluster', 'settings', 'line-1')).toEqual({
      ...{ ntpServers: ['ntp.plant.example'], sshKeys: [`${publicKey} anna@plant`] },
    })
    await ok('cluster', 'settings', 'line-1', '--none')
    expect(await json('cluster', 'settings', 'line-1')).toEqual({ ntpServers: [], sshKeys: [] })
    await ok('cluster', 'apply', 'line-1', '--yes')
    expect((await json<SpectroCluster>('cluster', 'show', uid)).spec.number).toBe(6)

    const asked = await run('cluster', 'delete', 'line-1')
    expect([asked.exitCode, asked.stderr]).toEqual([2, expect.stringContaining('line-1 on hall-b-7 will go')])
    await ok('cluster', 'delete', 'line-1', '--yes')
    expect((await json<SpectroCluster>('cluster', 'show', uid)).status.state).toBe('Deleting')
    await platform.app.inject({
      ...{ method: 'PATCH', url: `/v1/edgehosts/${host.uid}/health`, payload: { state: 'healthy' } },
      headers: { authorization: host.token },
    })
    const forced = await run('cluster', 'delete', 'line-1', '--force', '--yes')
    expect([forced.exitCode, forced.stderr]).toEqual([1, expect.stringContaining('HostNotSilent')])
  })

  it('are created from a file, in the project that is named', async () => {
    const projectUid = (await ok('project', 'create', 'south')).trim()
    const host = await joinedHost(platform, admin, { name: 'gate-1', projectUid })
    const file = join(folder, 'entity.json')
    writeFileSync(file, JSON.stringify(clusterEntity(host.uid, profileUid, { name: 'gate' })))
    const elsewhere = await run('cluster', 'create', file)
    expect(elsewhere.exitCode).toBe(1)
    expect(elsewhere.stdout).toMatch(/^error +HostNotFound/m)
    expect(elsewhere.stderr).toMatch(/\(ClusterInvalid\)/)
    const uid = (await ok('cluster', 'create', file, '--project', 'south')).trim()
    const { items } = await json<{ items: SpectroCluster[] }>('cluster', 'list', '--project', 'south')
    expect(items.map(({ metadata }) => metadata.uid)).toEqual([uid])
  })

  it('that cannot be made are said to be so with all problems', async () => {
    await joinedHost(platform, admin, { name: 'hall-c-1' })
    const args = ['--name', 'Line', '--edge-host', 'hall-c-1', '--profile', 'plant@1.0.0', '--set', 'USER=7']
    const { exitCode, stdout } = await run('cluster', 'validate', ...args)
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/Checks: the cluster cannot be created/)
    expect(stdout.match(/^error/gm)?.length).toBeGreaterThan(1)
  })

  it.each([
    ['neither a file nor options', [], 'give FILE, or --name, --edge-host and --profile'],
    ['both', ['x.json', '--name', 'a'], 'FILE says all of the cluster'],
    [
      'a sensitive value on the command line',
      ['--name', 'a', '--edge-host', 'open-1', '--profile', 'plant@1.0.0', '--set', 'PASSWORD=x'],
      '--set: PASSWORD is sensitive',
    ],
  ])('%s is refused before anything is sent', async (_, args, why) => {
    if (args.includes('open-1')) await joinedHost(platform, admin, { name: 'open-1' })
    const { exitCode, stderr } = await run('cluster', 'create', ...args)
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(why)])
  })

  it('give their kubeconfig, which only its owner reads', async () => {
    const { host, uid } = await made('hall-d-1')
    const none = await run('cluster', 'kubeconfig', 'hall-d-1')
    expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining('has not sent a kubeconfig')])
    await report(host, 'PUT', `${uid}/assets/kubeconfig`, { kubeconfig: 'kind: Config\n' })
    const file = join(folder, 'kubeconfig')
    await ok('cluster', 'kubeconfig', 'hall-d-1', '--file', file)
    expect(readFileSync(file, 'utf8')).toBe('kind: Config\n')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await ok('cluster', 'kubeconfig', uid)).toBe('kind: Config\n')
  })
})

describe('a cluster whose host is silent', () => {
  it('is shown as old, and nothing says that the host does something', async () => {
    const { host, uid } = await made('hall-f-1')
    await platform.app.inject({
      ...{ method: 'PATCH', url: `/v1/edgehosts/${host.uid}/health`, payload: { state: 'healthy' } },
      headers: { authorization: host.token },
    })
    await beat(host, uid, { number: 1, state: 'Running' })
    await say(host, uid, 'True', 'Applied', 'revision 1')
    await vi.waitUntil(() => platform.rooms.hosts.find(host.uid)?.health !== undefined, { timeout: 60_000 })
    expect(await ok('cluster', 'list')).toMatch(/^hall-f-1 .* Running +Applied +\S+ [0-9:]+Z +plant/m)
    platform.clock.turn(4 * minuteMs)
    await platform.rooms.hosts.jobs.find(({ name }) => name === 'silent-hosts')?.run()
    admin = await platform.signIn('root@plant.example', 'a long password')
    expect(await ok('cluster', 'list')).toMatch(/^hall-f-1 .* was Running +Applied +\S+ \S+Z, silent +plant/m)
    expect(await ok('cluster', 'show', 'hall-f-1')).toMatch(/Host silent: the host hall-f-1 does not answer/)
    expect(await ok('host', 'list')).toMatch(/^hall-f-1 .* unhealthy +\S+ \S+Z /m)
    const watched = await run('cluster', 'watch', 'hall-f-1')
    expect([watched.exitCode, watched.stdout]).toEqual([6, expect.stringContaining('HostSilent')])
    const applied = await run('cluster', 'apply', 'hall-f-1', '--yes')
    expect(applied.stderr).toMatch(/as number 2\. The host hall-f-1 does not answer .* nothing happens there/)
    expect(await ok('cluster', 'list')).toMatch(/^hall-f-1 .* was Running +number 2 waits +/m)
    const waiting = await run('cluster', 'watch', 'hall-f-1')
    expect([waiting.exitCode, waiting.stderr]).toEqual([6, expect.stringContaining('number 2 waits')])
    const asked = await run('cluster', 'delete', 'hall-f-1')
    expect(asked.stderr).toMatch(/Then it deletes the cluster.*\. Number 2, .* is left out/)
    const deleted = await run('cluster', 'delete', 'hall-f-1', '--yes')
    expect(deleted.stderr).toMatch(/hall-f-1 is to be deleted\. The host hall-f-1 does not answer/)
    const crossed = await run('cluster', 'apply', 'hall-f-1', '--yes')
    expect([crossed.exitCode, crossed.stderr]).toEqual([1, expect.stringContaining('--cancel-deletion')])
    const cancelled = await run('cluster', 'apply', 'hall-f-1', '--cancel-deletion', '--yes')
    expect(cancelled.stderr).toContain('as number 4; its deletion is cancelled')
    const { status } = await json<SpectroCluster>('cluster', 'show', uid)
    expect(status).toMatchObject({ state: 'Running', isDeletionRequested: false })

    // It is heard again.
    expect((await host.logIn()).status).toBe(200)
    await platform.app.inject({
      ...{ method: 'PATCH', url: `/v1/edgehosts/${host.uid}/health`, payload: { state: 'healthy' } },
      headers: { authorization: host.token },
    })
    await vi.waitUntil(
      async () => / Running +number 4 waits +\S+ \S+Z +plant/.test(await ok('cluster', 'list')),
      { timeout: 30_000 },
    )
  })
})

describe('a watch', () => {
  it('shows the steps of the host, and ends when the change is applied', async () => {
    const { host, uid } = await made('hall-e-1')
    const step = { key: 'kubeadm', title: 'Start Kubernetes', failures: 0 }
    const times = { startTimestamp: '2026-01-31T08:00:00Z', endTimestamp: '2026-01-31T08:00:42Z' }
    await beat(host, uid, { number: 1, state: 'Running', steps: [{ ...step, state: 'done', ...times }] })
    await say(host, uid, 'True', 'Applied', 'revision 1')
    const shown = await ok('cluster', 'watch', 'hall-e-1')
    expect(shown).toMatch(/^2026-01-31 08:00:00Z +StepStarted +Start Kubernetes$/m)
    expect(shown).toMatch(/^2026-01-31 08:00:42Z +StepDone +Start Kubernetes \(42 s\)$/m)
    expect(shown).toMatch(/ Applied +revision 1$/m)
  })

  it('fails where the host has refused it, with one event a line for programs', async () => {
    const { host, uid } = await made('hall-e-2')
    await say(host, uid, 'False', 'Refused', 'it has no room')
    const { exitCode, stdout, stderr } = await run('cluster', 'watch', 'hall-e-2', '-o', 'json')
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('has refused it: it has no room')])
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { reason: string })
    expect(events.map(({ reason }) => reason)).toEqual(['Wanted', 'Pending', 'Refused'])
  })

  it('ends when the cluster is deleted', async () => {
    const { host, uid } = await made('hall-e-3')
    await ok('cluster', 'delete', 'hall-e-3', '--yes')
    let shown = ''
    const watching = execa(
      process.execPath,
      [ctl.program, '--socket', socket, 'cluster', 'watch', 'hall-e-3'],
      {
        ...{ reject: false, extendEnv: false, timeout: 20_000 },
        env: { PATH: '/usr/bin:/bin', HOME: ctl.home },
      },
    )
    watching.stdout.on('data', (part: Buffer) => (shown += part.toString()))
    await vi.waitUntil(() => / Deleting\b/.test(shown), { timeout: 60_000 })
    await beat(host, uid, { number: 2, state: 'Deleted' })
    expect(await watching).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('is deleted') as string,
    })
  })
})
