import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  clusterPath,
  createChangingHost,
  host,
  noContent,
  revisionOf,
  tried,
  write,
  type Answer,
} from '../../../support/changing-host.ts'
import { detailsOf, json } from '../../../support/played-cluster.ts'

const world = createChangingHost()
const { ctl, asked, writes, bodyOf, run, runOnTerminal } = world
afterAll(() => world.stop())

describe('cluster rollback, revisions and settings', () => {
  const items = [
    revisionOf(3, 'rolledBack', { reason: 'web was not available', by: 'bob' }),
    revisionOf(2, 'good'),
    revisionOf(1, 'good', { isActive: false, kubernetesVersion: '1.33.8' }),
  ]
  const listed = { [`GET ${clusterPath}/revisions`]: json(200, { items }) }
  const discards = json(409, {
    ...{ code: 'WouldDiscardChanges', message: 'it would' },
    details: { copyTimestamp: '2026-01-30T08:00:00.000Z' },
  })

  it('rollback shows to which revision it goes, and sends just that one', async () => {
    const answers = host({
      ...listed,
      [`POST ${clusterPath}/rollback`]: write({ ...tried, revision: 1 }, noContent('"two"')),
    })
    const ended = await run(answers, ['rollback', '--yes', '--no-wait'])
    expect(ended.exitCode, ended.stderr).toBe(0)
    expect(ended.stdout).toMatch(
      /This goes back to revision 1 \(shop 1\.0\.0, Kubernetes 1\.33\.8, of 2026-01-31 08:00:00Z by ada\)/,
    )
    expect(bodyOf(`POST ${clusterPath}/rollback?dryRun=true`)).toEqual({})
    expect(JSON.parse(writes()[0]?.body ?? '')).toEqual({ revision: 1 })
    expect(ended.stderr).toMatch(/Revision 4 is accepted/)
  })

  it('a rollback that would discard changes says since when, and what to add', async () => {
    const ended = await run(host({ ...listed, [`POST ${clusterPath}/rollback`]: discards }), [
      'rollback',
      '1',
      '--yes',
    ])
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(
      /restored from its copy of 2026-01-30 08:00:00Z.*lost.*With --discard-changes it is done/,
    )
    expect(writes()).toEqual([])
  })

  it('--discard-changes names the copy in its question, and is sent only where it is needed', async () => {
    const needed: Answer = (request, response, body) =>
      (body.includes('"discardChanges":true')
        ? write({ ...tried, revision: 1 }, noContent('"two"'))
        : discards)(request, response, body)
    const answers = host({ ...listed, [`POST ${clusterPath}/rollback`]: needed })
    const no = await runOnTerminal(answers, ['rollback', '1', '--discard-changes'], '\n')
    expect(no.exitCode).toBe(1)
    expect(no.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /Kubernetes is restored from its copy of 2026-01-30 08:00:00Z: everything .* is lost\. Apply it\?/,
    )
    expect(writes()).toEqual([])
    await run(answers, ['rollback', '1', '--discard-changes', '--yes', '--no-wait'])
    expect(JSON.parse(writes()[0]?.body ?? '')).toEqual({ revision: 1, discardChanges: true })
    const plain = host({
      ...listed,
      [`POST ${clusterPath}/rollback`]: write({ ...tried, revision: 1 }, noContent('"two"')),
    })
    await run(plain, ['rollback', '1', '--discard-changes', '--yes', '--no-wait'])
    expect(JSON.parse(writes()[0]?.body ?? '')).toEqual({ revision: 1 })
  })

  it('revisions lists them, the newest first, with what became of them', async () => {
    const scheduled = revisionOf(4, 'waiting', { scheduleAt: '2031-05-01T02:00:00.000Z' })
    const answers = host({ [`GET ${clusterPath}/revisions`]: json(200, { items: [scheduled, ...items] }) })
    const ended = await run(answers, ['revisions'])
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^REVISION +TIME +BY +ORIGIN +DEFINITION +KUBERNETES +OUTCOME\n4 /)
    expect(ended.stdout).toMatch(/^4 .* waiting for 2031-05-01 02:00:00Z$/m)
    expect(ended.stdout).toMatch(/^3 .* bob .* rolledBack$/m)
    expect(ended.stdout).toMatch(/^2 \* .* good$/m)
    expect(ended.stdout).toMatch(/\n\n3 rolledBack: web was not available\n$/)
    const asJson = await run(answers, ['revisions', '-o', 'json'])
    expect(JSON.parse(asJson.stdout)).toEqual({ items: [scheduled, ...items] })
  })

  it('a reason of long words leaves the revisions a table on a terminal', async () => {
    const reason = `pod=web-647d954c97-2hhj7_shop(${'2e56d8bc-'.repeat(4)}19142b5d253e): it ended`
    const found = revisionOf(3, 'rolledBack', { reason })
    const ended = await runOnTerminal(
      host({ [`GET ${clusterPath}/revisions`]: json(200, { items: [found] }) }),
      ['revisions'],
      '',
    )
    expect(ended.stdout).toMatch(/^REVISION +TIME +BY +ORIGIN +DEFINITION +KUBERNETES +OUTCOME\r?\n3 /m)
  })

  it('settings shows what the cluster has, and whether the host has it', async () => {
    const details = detailsOf({
      ...{ sshKeysApplied: false, ntpServersApplied: false },
      clusterConditions: [
        { type: 'NtpServersApplied', status: 'True' },
        { type: 'SshKeysApplied', status: 'False', message: 'this host has no account mechanic' },
      ],
    })
    const spec = { ...details.spec, ntpServers: ['192.0.2.1'], sshKeys: ['ssh-ed25519 AAAA ada@shop'] }
    const ended = await run(host({ [`GET ${clusterPath}/details`]: json(200, { ...details, spec }) }), [
      'settings',
    ])
    expect(ended.stdout).toMatch(
      /NTP servers: 192\.0\.2\.1\n +not applied yet: edgehostctl cluster watch\n +SSH keys: ssh-ed25519 ada@shop\n +not applied: this host has no account mechanic\n/,
    )
  })

  it('settings replaces both lists by what is given', async () => {
    const keys = join(ctl.home, 'keys.pub')
    writeFileSync(keys, '# of the shop\nssh-ed25519 AAAA ada\n\nssh-ed25519 BBBB bob\r\n')
    const settings = {
      ntpServers: { from: [], to: ['a', 'b'] },
      sshKeys: { from: ['ssh-rsa CCCC old'], to: ['ssh-ed25519 AAAA ada', 'ssh-ed25519 BBBB bob'] },
    }
    const found = { ...tried, diff: { isEmpty: false, packs: [], variables: [], effects: [], settings } }
    const answers = host({ [`PUT ${clusterPath}/settings`]: write(found, noContent('"two"')) })
    const ended = await run(answers, ['settings', '--ntp', 'a', 'b', '--ssh-key', keys, '--yes', '--no-wait'])
    expect(ended.exitCode, ended.stderr).toBe(0)
    expect(ended.stdout).toMatch(/SSH keys: - ssh-rsa old\n +\+ ssh-ed25519 ada\n +\+ ssh-ed25519 bob/)
    expect(JSON.parse(writes()[0]?.body ?? '')).toEqual({
      ntpServers: ['a', 'b'],
      sshKeys: ['ssh-ed25519 AAAA ada', 'ssh-ed25519 BBBB bob'],
    })
    await run(answers, ['settings', '--none', '--yes', '--no-wait'])
    expect(JSON.parse(writes()[0]?.body ?? '')).toEqual({ ntpServers: [], sshKeys: [] })
  })

  it('settings refuses a private key and a file without a key, and shows nothing of them', async () => {
    const key = join(ctl.home, 'id')
    writeFileSync(key, '-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n')
    const ended = await run(host(), ['settings', '--ssh-key', key, '--yes'])
    expect(ended.exitCode).toBe(2)
    expect(ended.stderr).toMatch(/has a private key.*give the public one, .*id\.pub/)
    expect(ended.stderr).not.toContain('hunter2')
    const none = await run(host(), ['settings', '--ssh-key', '-', '--yes'], '# nothing\n')
    expect(none.stderr).toMatch(/--ssh-key: - has no key/)
    expect(asked()).toEqual([])
  })

  it.each(['diff', 'apply', 'rollback', 'revisions', 'settings'])('cluster %s has a help', async (name) => {
    const ended = await ctl.run(['cluster', name, '--help'])
    expect(ended.exitCode).toBe(0)
    expect(ended.stdout).toContain(`cluster ${name}`)
  })
})
