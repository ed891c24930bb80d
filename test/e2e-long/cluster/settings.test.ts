import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterClient, clusterPath, type ClusterClient } from '../../e2e/cluster/cluster-client.ts'
import { bootClusterHost, type ClusterHost } from '../../e2e/cluster/cluster-host.ts'
import { fetchDebian, installDebian } from '../../e2e/host/debian-packages.ts'
import type { Edgehostd } from '../../e2e/host/edgehostd.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { output, run } from '../../e2e/host/process.ts'
import {
  addTimeServiceAndAccount,
  mechanic as account,
  ntpDropIn as dropIn,
  servedBy,
  timesyncd,
} from '../../e2e/host/time-service.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

let host: Edgehostd
const served = () => servedBy(host)

describe.skipIf(isKitMissing())('the settings of a cluster', () => {
  let plant: ClusterHost | undefined
  let cluster: ClusterClient
  const key = () => join(plant!.host.folder, 'key')

  beforeAll(async () => {
    plant = await bootClusterHost()
    ;({ host } = plant)
    cluster = clusterClient(plant)
    await addTimeServiceAndAccount(host)
    await host.sh(`systemctl start ${timesyncd}`)
    await installDebian(host, 'openssh-server')
    // The case that installs it has no time for a download.
    await fetchDebian('chrony')
    await host.sh('systemctl start ssh')
    await host.configure('account', `cluster: {sshAccount: ${account}}\n`)
    await output('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'operator@site', '-f', key()])
    await cluster.create()
    await cluster.reach('Running')
  })
  afterAll(() => plant?.host.unplug())

  /** Logs in over the wire with the key. @returns the account, or the refusal */
  async function login(): Promise<string> {
    const options = [
      'BatchMode=yes',
      'StrictHostKeyChecking=no',
      'UserKnownHostsFile=/dev/null',
      'LogLevel=ERROR',
    ]
    const { stdout, stderr } = await run('nsenter', [
      ...['-t', String(host.clientNamespace()), '-n', 'ssh', '-i', key()],
      ...[...options.map((each) => `-o${each}`), `${account}@10.77.0.1`, 'id', '-un'],
    ])
    return (stdout || stderr).trim()
  }
  const applied = async () => {
    const { ntpServersApplied, sshKeysApplied, phase } = (await cluster.details())!.status
    return { ntpServersApplied, sshKeysApplied, phase }
  }
  const all = { ntpServersApplied: true, sshKeysApplied: true, phase: 'Running' }

  it('servers and keys of one PUT are those of the time service and of sshd, and nothing else is done', async () => {
    expect(await login()).toMatch(/Permission denied/)
    const sshKeys = [(await readFile(`${key()}.pub`, 'utf8')).trim()]
    const pods = await cluster.kubectl('get', 'pods', '-A', '-o', 'jsonpath={.items[*].metadata.uid}')
    const body = { ntpServers: ['10.77.0.2'], sshKeys }
    const reply = await host.http('PUT', `${clusterPath}/settings`, { token: plant!.token, body })
    expect(reply, reply.text).toMatchObject({ status: 204 })
    await eventually(async () => expect(await applied()).toEqual(all), 30_000)
    expect(await served()).toBe('as 1 "10.77.0.2"')
    expect(await login()).toBe(account)
    expect(await cluster.kubectl('get', 'pods', '-A', '-o', 'jsonpath={.items[*].metadata.uid}')).toBe(pods)
    const shown = await host.run(['edgehostctl', 'cluster', 'settings'])
    expect(shown.stdout).toBe(' NTP servers: 10.77.0.2\n    SSH keys: ssh-ed25519 operator@site\n')
  })

  it('follow within a minute to chrony, and to another file of an sshd that does not run', async () => {
    // It may not set the clock, which is that of the test machine.
    await host.write(
      '/etc/systemd/system/chrony.service.d/container.conf',
      '[Unit]\nConditionCapability=\n[Service]\nCapabilityBoundingSet=~CAP_SYS_TIME\nExecStart=\nExecStart=!/usr/sbin/chronyd -x -F 1\n',
    )
    await host.sh(`systemctl stop ${timesyncd}; dpkg --remove --force-depends systemd-timesyncd`)
    await installDebian(host, 'chrony')
    await host.write(
      '/etc/ssh/sshd_config.d/site.conf',
      'AuthorizedKeysFile .ssh/authorized_keys .ssh/site_keys\n',
    )
    await host.sh('systemctl daemon-reload; systemctl start chrony; systemctl stop ssh; test ! -e /run/sshd')
    await eventually(async () => {
      expect(await host.output(['chronyc', '-n', 'sources'])).toContain(' 10.77.0.2 ')
      expect(await host.sh(`ls /home/${account}/.ssh`)).toBe('site_keys\n')
      expect(await applied()).toEqual(all)
    }, 90_000)
    expect(await host.sh(`test -e ${dropIn} || echo none`)).toBe('none\n')
    await host.sh('systemctl start ssh')
    expect(await login()).toBe(account)
  })

  it('edgehostctl shows, applies and takes back a change, and renews certificates, and says what happens', async () => {
    const ctl = (...args: readonly string[]) => host.run(['edgehostctl', 'cluster', ...args])
    expect(await ctl('diff')).toMatchObject({ exitCode: 0, stdout: 'Nothing differs, and nothing waits.\n' })
    const asked = await ctl('apply', '--set', 'greeting=moin')
    expect(asked).toMatchObject({ exitCode: 2, stdout: '' })
    expect(asked.stderr).toContain('add --yes')
    const diff = await ctl('diff', '--set', 'greeting=moin')
    expect(diff.stdout).toMatch(/^greeting +changed +good morning +moin$/m)
    const applied = await ctl('apply', '--set', 'greeting=moin', '--yes')
    expect(applied, applied.stdout).toMatchObject({ exitCode: 0, stderr: 'Revision 3 is good.\n' })
    expect(applied.stdout).toMatch(
      /UpdateAccepted +revision 3 of root[^]* Running +the cluster plant is Running\n$/,
    )
    const back = await ctl('rollback', '--yes', '-o', 'json')
    expect(back).toMatchObject({ exitCode: 0, stderr: 'Revision 4 is good.\n' })
    const reasons = back.stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { reason: string }).reason)
    expect(reasons[0]).toBe('UpdateAccepted')
    const listed = await ctl('revisions')
    expect(listed.stdout).toMatch(/\n4 \* .* root +rollback +plant 1\.0\.0 +1\.34\.4 +good\n3 /)
    const renewed = await ctl('certificates', 'renew', '--wait')
    expect(renewed, renewed.stdout).toMatchObject({ exitCode: 0, stderr: 'The certificates are renewed.\n' })
    expect(renewed.stdout).toMatch(/RenewalRequested +root asked [^]* CertificatesRenewed +the certificates/)
    expect((await ctl('certificates')).stdout).toMatch(/Asked for: .* by root, done /)
  })

  it('are put back when the cluster is deleted', async () => {
    await cluster.remove()
    expect(await host.output(['chronyc', '-n', 'sources'])).not.toContain('10.77.0.2')
    expect(await host.sh(`ls -A /etc/chrony/sources.d; test -e /home/${account}/.ssh || echo none`)).toBe(
      'README\nnone\n',
    )
    expect(await login()).toMatch(/Permission denied/)
  })
})
