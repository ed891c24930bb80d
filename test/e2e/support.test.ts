import { zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { openPane } from './host/pane.ts'
import { asUser } from './host/process.ts'

const right = 'support canary $HOME %n 0901'
const next = 'support canary renewed 0902'
const typed = 'support-canary-in-the-wrong-field'
const scrape = 'support-canary-of-the-metrics-0903'
const file = '/root/support.tar.zst'

let host: Edgehostd
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.write('/etc/edgehostd/metrics.token', `${scrape}\n`)
  await host.sh('chmod 600 /etc/edgehostd/metrics.token')
  await host.configure('metrics', 'metrics: {tokenFile: /etc/edgehostd/metrics.token}\n')
})
afterAll(() => host.unplug())

/** Every file of the archive by its name, and the bytes of the whole. */
async function readArchive(path = file) {
  const whole = zstdDecompressSync(Buffer.from(await host.sh('base64 "$1"', path), 'base64'))
  const files = new Map<string, string>()
  // Headers of 512 bytes, name and octal size in them, pax(1).
  for (let at = 0; whole[at] !== 0;) {
    const name = whole.toString('ascii', at, whole.indexOf(0, at))
    const size = parseInt(whole.toString('ascii', at + 124, at + 135), 8)
    files.set(name.replace(/^[^/]*\//, ''), whole.toString('utf8', at + 512, at + 512 + size))
    at += 512 + Math.ceil(size / 512) * 512
  }
  // eslint-disable-next-line @typescript-eslint/no-unsafe-return -- tests look into replies of every shape
  return { whole, files, json: (name: string) => JSON.parse(files.get(name) ?? 'null') }
}

/** Everything that was ever a secret on this host. */
async function collectSecrets(): Promise<Map<string, Buffer>> {
  const lines = (text: string) =>
    text.split('\n').filter((line) => line.length > 8 && !line.startsWith('---'))
  const secret = Buffer.from(await host.sh('base64 /var/lib/edgehostd/secret'), 'base64')
  const registry = (await host.sh('cat /var/lib/edgehostd/registry-password')).trim()
  const texts = [
    ...[right, next, typed, scrape, ...host.secrets],
    ...lines(await host.sh('cat /var/lib/edgehostd/tls/key.pem')),
    ...lines(await host.sh("cut -d: -f2 /etc/shadow | grep '[$]'")),
    ...[registry, Buffer.from(`edgehostd:${registry}`).toString('base64')],
    ...[secret.toString('hex'), secret.toString('base64'), secret.toString('base64url')],
  ]
  return new Map([['the secret itself', secret], ...texts.map((text) => [text, Buffer.from(text)] as const)])
}

describe('edgehostctl support', () => {
  it('the support archive describes the host, without any secret that was used on it', async () => {
    const { token, refreshToken } = await host.openSession('chief', right)
    await host.renew(refreshToken)
    await host.login('chief', `${right} wrong`)
    await host.login(typed, right)
    await host.http('GET', `/v1/nothing/${token}?password=${typed}`, { token })
    await host.http('GET', '/v1/edge-mgmt/content/registry/password', { token })
    await host.sh(
      'curl -fsS -u "edgehostd:$(cat /var/lib/edgehostd/registry-password)" http://127.0.0.1:5081/v2/',
    )
    await host.http('GET', '/metrics', { headers: { authorization: `Bearer ${scrape}` } })
    const change = { username: 'chief', oldPassword: right, newPassword: next }
    expect(await host.http('POST', '/v1/users/default/password/reset', { body: change })).toMatchObject({
      status: 204,
    })
    await host.openSession('chief', next)

    const ended = await host.run(['edgehostctl', 'support', '--file', file])
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^\/root\/support\.tar\.zst holds \d+ files .* secrets are masked/)
    expect(await host.sh('stat -c "%a %u" /root/support.tar.zst')).toBe('600 0\n')

    const { whole, files, json } = await readArchive()
    const secrets = await collectSecrets()
    expect(secrets.size).toBeGreaterThan(15)
    const found = [...secrets].filter(([, bytes]) => whole.includes(bytes)).map(([name]) => name)
    expect(found).toEqual([])

    // A password in the wrong field is not in the journal either.
    expect(files.get('journal.txt')).toMatch(/"reason":"unknown user".*"msg":"login refused"/)
    expect(await host.sh('journalctl --unit=edgehostd --output=cat')).not.toContain(typed)
    expect(files.get('journal.txt')).toMatch(/"user":"chief".*"msg":"password changed"/)
    expect(files.get('configuration.yaml')).toMatch(
      /tokenFile: "?\/etc\/edgehostd\/metrics.token"? # \/etc\//,
    )
    // As the running daemon was started.
    expect(files.get('configuration.yaml')).toMatch(/enabled: false # environment EDGEHOSTD_API_RATE_LIMITS/)
    expect(files.get('edgehostd.service.txt')).toMatch(/^ActiveState=active$/m)
    expect(files.get('edgehostd.socket.txt')).toMatch(/^SubState=running$/m)
    expect([...files.keys()][0]).toBe('README.txt')
    expect(files.get('README.txt')).toMatch(/^- edgehostd \S+ is ready; it runs since /m)
    expect(files.get('README.txt')).toMatch(/^- there is no cluster$/m)
    expect(files.get('network.txt')).toMatch(/^==== ip rule\n0:\s+from all lookup local$/m)
    expect(json('error-logs.json').items).toBeInstanceOf(Array)
    // Without a cluster there are no files of one.
    expect([...files.keys()].filter((name) => /kubelet|containerd|steps|pods/.test(name))).toEqual([])
    expect(files.get('units.txt')).toMatch(/^ExecStart=.*main\.cjs$/m)
    expect(files.get('metrics.txt')).toMatch(/^edgehostd_/m)
    expect(json('facts.json').metadata.id).toMatch(/^edge-/)
    expect(json('status.json').mode).toBe('airgap')
    expect(json('settings.json')).not.toBeNull()
    expect(json('audit-head.json')).toMatchObject({ isIntact: true })
    expect(json('database.json')).toMatchObject({ check: ['ok'], tables: { session: { rows: 1 } } })
    expect(json('database.json').tables.audit.rows).toBe(json('audit-head.json').count)
    expect(json('versions.json').packages).toContainEqual(expect.stringMatching(/^edgehostd \d/))
    const summary = json('summary.json') as { files: { name: string; problem?: string }[] }
    expect(summary.files.map(({ name }) => name).sort()).toEqual(
      [...files.keys()].filter((name) => name !== 'summary.json' && name !== 'README.txt').sort(),
    )
    expect(summary.files.filter(({ problem }) => problem !== undefined)).toEqual([])
  })

  it('the support archive is made while the daemon is down, and names what could not be read', async () => {
    await host.output(['systemctl', 'stop', 'edgehostd.socket', 'edgehostd.service'])
    const ended = await host.run(['edgehostctl', '-o', 'json', 'support', '--file', '/root/down.tar.zst'])
    await host.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd.service'])
    expect(ended.exitCode).toBe(0)
    const { files } = JSON.parse(ended.stdout) as { files: { name: string; problem?: string }[] }
    const missing = files.flatMap(({ name, problem }) => (problem === undefined ? [] : [name]))
    expect(missing.sort()).toEqual([
      'attention.json',
      'audit-head.json',
      'cluster-applications.json',
      'cluster-certificates.json',
      'cluster-details.json',
      'cluster-events.json',
      'cluster-lifecycle.json',
      'cluster-nodes.json',
      'cluster-revisions.json',
      'configurations-status.json',
      'configurations.json',
      'content-bundles.json',
      'content-images.json',
      'content-registry.json',
      'content-usage.json',
      'error-logs.json',
      'facts.json',
      'host-actions.json',
      'host-time.json',
      'inventory.json',
      'metrics.txt',
      'network-bonds.json',
      'network-bridges.json',
      'network-changes.json',
      'network-interfaces.json',
      'network-vlans.json',
      'platform.json',
      'settings.json',
      'status.json',
    ])
    const archive = await readArchive('/root/down.tar.zst')
    expect(archive.files.get('README.txt')).toMatch(/^- edgehostd does not run: inactive, dead/m)
    expect(archive.files.get('edgehostd.service.txt')).toMatch(/^ActiveState=inactive$/m)
    expect(archive.json('database.json').check).toEqual(['ok'])
  })

  it('the support archive can be written to a pipe', async () => {
    const ended = await host.run(['sh', '-c', 'edgehostctl support --file=- | cat > /root/piped.tar.zst'])
    expect(ended).toMatchObject({ exitCode: 0, stdout: '', stderr: '' })
    const [piped, whole] = [await readArchive('/root/piped.tar.zst'), await readArchive()]
    expect([...piped.files.keys()].sort()).toEqual([...whole.files.keys()].sort())
  })

  it('support needs root on the host itself, and an address of another host', async () => {
    const ended = await host.run(asUser('chief', ['edgehostctl', 'support']))
    expect(ended).toMatchObject({ exitCode: 4, stdout: '' })
    expect(ended.stderr).toMatch(/sudo edgehostctl support/)
    const elsewhere = await host.run(['edgehostctl', '--host', 'box', 'support'])
    expect(elsewhere).toMatchObject({ exitCode: 3, stdout: '' })
    expect(elsewhere.stderr).toMatch(/box/)
    const unwritable = await host.run(['edgehostctl', 'support', '--file', '/nowhere/a.tar.zst'])
    expect(unwritable).toMatchObject({ exitCode: 1, stdout: '' })
    expect(unwritable.stderr).toMatch(/^edgehostctl: the folder \/nowhere is missing; make it first/)
  })

  it('support shows its progress on a terminal', async () => {
    const pane = await openPane(host, 80)
    await pane.type('clear; edgehostctl support; echo ended with $?', 'Enter')
    const shown = await pane.until(/^ended with 0$/m)
    // The last line of the progress is removed again.
    expect(shown).toMatch(/\.tar\.zst holds \d+ files/)
    expect(shown).not.toMatch(/reading/)
    await pane.close()
  })
})
