import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { layBridge, type Bridge } from './host/bridge.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { openPane } from './host/pane.ts'
import type { Ended } from './host/process.ts'

const right = 'operator canary $HOME %n 0901'
let host: Edgehostd
let other: Edgehostd
let bridge: Bridge
let address: string

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine', wire: false })
  other = await bootEdgehostd({ lower: 'machine', wire: false })
  bridge = await layBridge([host.leader, other.leader])
  address = bridge.addresses[0]!
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'guest', password: right })
})
afterAll(async () => {
  await bridge.cut()
  await host.unplug()
  await other.unplug()
})

const here = (...args: string[]) => host.run(['edgehostctl', ...args])
const there = (...args: string[]) => other.run(['edgehostctl', '--host', address, ...args])
const fingerprint = async () =>
  JSON.parse((await here('-o', 'json', 'status')).stdout).service.certificate.fingerprint as string
const logIn = async (user: string): Promise<Ended> =>
  other.run(
    [
      ...['edgehostctl', '--host', address, '--fingerprint', await fingerprint()],
      ...['login', user, '--password-stdin'],
    ],
    { input: `${right}\n` },
  )
const forgetAll = () => other.sh('rm -rf /root/.config/edgehostctl')

/** What each command says, on either way. */
const online: readonly (readonly [string, RegExp])[] = [
  ['status', /^ *State: running$/m],
  ['host show', /^ *Processors: \d+$/m],
  ['sessions list', /^UID +USER +ROLE/],
  ['audit list --limit=3', /^TIME +WHO[^\n]*\n(20[^\n]*\n){3}$/],
  ['audit verify', /^ *Trail: whole and unaltered$/m],
  ['audit download --file=/tmp/audit.tar', /^$/],
  ['api get /v1/ping', /^\{"msg":"pong"\}$/],
  ['-o json host show', /^\{\n {2}"metadata"/],
  ['-o yaml audit verify', /^isIntact: true$/m],
]

describe('on the host, as root', () => {
  it.each(online)('%s', async (line, shown) => {
    const ended = await here(...line.split(' '))
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stdout).toMatch(shown)
  })

  it.each([
    ['version', /^edgehostctl \d+\.\d+\.\d+\n$/],
    ['--version', /^edgehostctl \d/],
    ['help', /Exit codes:\n {2}0/],
    ['sessions list --help', /^Usage: edgehostctl sessions list/],
    ['completion bash', /^complete -F _edgehostctl edgehostctl$/m],
    ['config check', /^the configuration is good$/m],
  ])('%s', async (line, shown) => {
    const ended = await here(...line.split(' '))
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(shown)
  })

  it('config check names every problem and ends with 78', async () => {
    await host.write('/root/bad.yaml', 'api:\n  prot: 1\n')
    const ended = await here('config', 'check', '/root/bad.yaml')
    expect(ended.exitCode).toBe(78)
    expect(ended.stderr).toMatch(/bad\.yaml:2:3: unknown key api\.prot; did you mean api\.port\?/)
  })

  it('api post, put, patch and delete send a body and say what was refused', async () => {
    const body = JSON.stringify({ username: 'chief', password: right })
    const login = await host.run(['edgehostctl', 'api', 'post', '/v1/users/default/login', '--data', '-'], {
      input: body,
    })
    expect(login.stdout + login.stderr).toMatch(/"Token"|"code"/)
    for (const method of ['put', 'patch', 'delete']) {
      const ended = await here('api', method, '/v1/ping')
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(JSON.parse(ended.stderr)).toMatchObject({ code: 'MethodNotAllowed' })
    }
  })

  it('definition build, inspect and validate, for anybody and without the daemon', async () => {
    const packs = [
      ['os', 'edge-native-byoi', '1.0.0'],
      ['k8s', 'edge-k3s', '1.33.3'],
      ['cni', 'cni-calico', '3.28.0'],
    ] as const
    for (const [layer, name, version] of packs) {
      const pack = { name, version, displayName: name, layer, cloudTypes: ['edge-native'] }
      await host.sh('mkdir -p "$1"', `/srv/packs/${layer}`)
      await host.write(`/srv/packs/${layer}/pack.json`, JSON.stringify(pack))
    }
    const profilePacks = packs.map(([layer, name, tag]) => ({
      ...{ name, layer, tag, uid: layer, type: 'spectro' },
      values: 'replicas: {{ .spectro.var.replicas }}\n',
    }))
    const template = { type: 'cluster', cloudType: 'edge-native', packs: profilePacks }
    const spec = { version: '1.0.0', template, variables: [{ name: 'replicas', format: 'number' }] }
    const profile = { metadata: { name: 'shop', uid: '65a0c0ffee0000000000abcd' }, spec }
    await host.write('/srv/profile.json', JSON.stringify(profile))
    const asGuest = (line: string) =>
      host.run([
        ...['setpriv', '--reuid=guest', '--regid=guest', '--clear-groups', 'sh', '-c'],
        `cd /tmp && HOME=/nowhere ${line}`,
      ])
    const build =
      'edgehostctl definition build --profile /srv/profile.json --pack /srv/packs/* --output shop.tar.zst'
    const built = await asGuest(build)
    expect(built).toMatchObject({ exitCode: 0 })
    expect(built.stdout).toMatch(/^ *Holds: 1 profile, 3 packs, 6 files/m)
    expect((await asGuest('edgehostctl definition inspect shop.tar.zst')).stdout).toMatch(
      /edge-k3s +1\.33\.3 +yes/,
    )
    expect(await asGuest('edgehostctl definition validate shop.tar.zst')).toMatchObject({ exitCode: 0 })
    await host.write('/srv/profile.json', JSON.stringify(profile).replace('var.replicas', 'var.replica'))
    expect(await asGuest(build)).toMatchObject({ exitCode: 0 })
    const refused = await asGuest('edgehostctl definition validate shop.tar.zst')
    expect(refused.exitCode).toBe(1)
    expect(refused.stdout).toMatch(/VariableUndeclared: .*did you mean replicas/)
    const cut = await asGuest(
      'head -c 200 shop.tar.zst > cut.tar.zst; edgehostctl definition inspect cut.tar.zst',
    )
    expect(cut).toMatchObject({ exitCode: 1, stdout: '' })
    expect(cut.stderr).toMatch(/ends too early/)
  })

  it('login and logout say that root needs none', async () => {
    for (const command of ['login', 'logout']) {
      const ended = await here(command)
      expect(ended.exitCode).toBe(2)
      expect(ended.stderr).toMatch(/nobody logs in.*root.*--host HOST/s)
    }
  })

  it('an ordinary user is told what to do', async () => {
    const ended = await host.run([
      'setpriv',
      '--reuid=guest',
      '--regid=guest',
      '--clear-groups',
      'edgehostctl',
      'status',
    ])
    expect(ended.exitCode).toBe(4)
    expect(ended.stderr).toMatch(/permission denied.*sudo.*--host/s)
  })

  it('a daemon that is down is 3, with the commands to type', async () => {
    await host.output(['systemctl', 'stop', 'edgehostd.socket', 'edgehostd.service'])
    const ended = await here('status')
    await host.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd.service'])
    expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
    expect(ended.stderr).toMatch(/systemctl status edgehostd\n.*journalctl -u edgehostd/s)
  })

  it('the manual page and the completion are installed', async () => {
    expect(await host.sh('zcat /usr/share/man/man1/edgehostctl.1.gz')).toMatch(/^\.SH EXIT STATUS$/m)
    const complete = async (...words: string[]) =>
      host.sh(
        'source /usr/share/bash-completion/completions/edgehostctl; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _edgehostctl; echo "${COMPREPLY[@]}"',
        'edgehostctl',
        ...words,
      )
    expect(await complete('sess')).toBe('sessions\n')
    expect(await complete('sessions', '')).toBe('list revoke\n')
    expect(await complete('--output', '=', 'y')).toBe('yaml\n')
  })
})

describe('from another host', () => {
  it('nothing is sent to a host that nobody has vouched for', async () => {
    const ended = await there('status')
    expect(ended).toMatchObject({ exitCode: 5, stdout: '' })
    expect(ended.stderr).toContain(await fingerprint())
    const wrong = await there('--fingerprint', 'AA:BB', 'status')
    expect(wrong).toMatchObject({ exitCode: 5 })
    expect((await other.run(['test', '-e', '/root/.config/edgehostctl/hosts'])).exitCode).toBe(1)
  })

  it('a login keeps key and tokens for root alone', async () => {
    const ended = await logIn('chief')
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stderr).toMatch(/Logged in on 10\.78\.0\.1 as chief \(admin\)/)
    const modes = await other.sh(
      'cd /root/.config/edgehostctl; stat -c "%a %F" . hosts hosts/* sessions sessions/*',
    )
    expect(modes.match(/^(700 directory|600 regular (empty )?file)$/gm)).toHaveLength(6)
  })

  it.each(online)('%s', async (line, shown) => {
    const ended = await there(...line.split(' '))
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stdout).toMatch(shown)
  })

  it('api post, put, patch and delete', async () => {
    const reset = { username: 'nobody-here', oldPassword: right, newPassword: `${right} new` }
    const body = JSON.stringify(reset)
    const posted = await other.run(
      [
        ...['edgehostctl', '--host', address],
        ...['api', 'post', '/v1/users/default/password/reset', '--data', '-'],
      ],
      { input: body },
    )
    expect(posted).toMatchObject({ exitCode: 4, stdout: '' })
    expect(JSON.parse(posted.stderr)).toMatchObject({ code: 'InvalidCredentials' })
    for (const method of ['put', 'patch', 'delete']) {
      const ended = await there('api', method, '/v1/ping')
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(JSON.parse(ended.stderr)).toMatchObject({ code: 'MethodNotAllowed' })
    }
  })

  it('sessions revoke ends the session of another', async () => {
    const login = ['edgehostctl', 'api', 'post', '/v1/users/default/login', '--data', '-']
    const body = JSON.stringify({ username: 'guest', password: right })
    expect(await host.run(login, { input: body })).toMatchObject({ exitCode: 0 })
    const list = JSON.parse((await there('sessions', 'list', '-o', 'json')).stdout) as {
      items: { uid: string; userName: string }[]
    }
    const { uid } = list.items.find(({ userName }) => userName === 'guest')!
    expect(await there('sessions', 'revoke', uid)).toMatchObject({ exitCode: 0 })
    expect((await there('sessions', 'list')).stdout).not.toContain(uid)
  })

  it('sessions revoke ends one, and its owner is not logged in any more', async () => {
    const list = JSON.parse((await there('sessions', 'list', '-o', 'json')).stdout) as {
      items: { uid: string; isCurrent: boolean }[]
    }
    const { uid } = list.items.find(({ isCurrent }) => isCurrent)!
    expect(await here('sessions', 'revoke', uid)).toMatchObject({ exitCode: 0 })
    const ended = await there('status')
    expect(ended).toMatchObject({ exitCode: 4, stdout: '' })
    expect(ended.stderr).toMatch(/not logged in.*login/)
  })

  it('a viewer sees what viewers may see', async () => {
    await logIn('guest')
    const ended = await there('status')
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stdout).toMatch(/Errors: only administrators see them/)
    expect(await there('audit', 'list')).toMatchObject({ exitCode: 1 })
    expect(await there('logout')).toMatchObject({ exitCode: 0 })
    expect(await there('status')).toMatchObject({ exitCode: 4 })
  })

  it('a renewed certificate is no other host', async () => {
    await logIn('chief')
    const before = await fingerprint()
    await host.sh('rm /var/lib/edgehostd/tls/certificate.pem; systemctl restart edgehostd')
    expect(await fingerprint()).not.toBe(before)
    expect(await there('status')).toMatchObject({ exitCode: 0 })
  })

  it('another key is refused until it is forgotten', async () => {
    const tokens = await other.sh('cat /root/.config/edgehostctl/sessions/*.json')
    await host.sh('rm -r /var/lib/edgehostd/tls; systemctl restart edgehostd')
    const ended = await there('status')
    expect(ended).toMatchObject({ exitCode: 5, stdout: '' })
    expect(ended.stderr).toContain(await fingerprint())
    expect(ended.stderr).toMatch(/edgehostctl forget 10\.78\.0\.1/)
    // Not even told to accept it.
    expect(await there('--fingerprint', await fingerprint(), 'status')).toMatchObject({ exitCode: 5 })
    expect(await other.sh('cat /root/.config/edgehostctl/sessions/*.json')).toBe(tokens)
    expect(await other.run(['edgehostctl', 'forget', address])).toMatchObject({ exitCode: 0 })
    expect(await logIn('chief')).toMatchObject({ exitCode: 0 })
    expect(await there('status')).toMatchObject({ exitCode: 0 })
  })

  it('a host that is not there is 3', async () => {
    const ended = await other.run(['edgehostctl', '--host', '10.78.0.77', 'status'])
    expect(ended).toMatchObject({ exitCode: 3 })
  })
})

describe('on a terminal', () => {
  it('asks for the host and the password, which is not shown, and puts the terminal back', async () => {
    await forgetAll()
    const pane = await openPane(other, 80)
    await pane.type(`edgehostctl --host ${address} login chief`, 'Enter')
    await pane.until(/\[y\/N\]/)
    expect((await pane.unbroken()).replaceAll('\n', '')).toContain(await fingerprint())
    await pane.type('y', 'Enter')
    await pane.until(/Password of chief on 10\.78\.0\.1:/)
    await pane.type(right, 'Enter')
    const shown = await pane.until(/Logged in on/)
    expect(shown).not.toContain('canary')
    // Typed text is echoed again, also after Ctrl-C at the question.
    await pane.type('clear', 'Enter')
    await pane.type(`edgehostctl --host ${address} login chief`, 'Enter')
    await pane.until(/Password of chief/)
    await pane.type('secret', 'C-c')
    await pane.until(/:\n\$ ?$/)
    await pane.type('echo ended with $?', 'Enter')
    expect(await pane.until(/^ended with 130$/m)).toMatch(/\$ echo ended with/)
    await pane.close()
  })

  it('an expired password is asked for anew', async () => {
    await host.addUser({ name: 'stale', password: right })
    await host.output(['chage', '-d', '0', 'stale'])
    const pane = await openPane(other, 80)
    const command = `edgehostctl --host ${address} --fingerprint ${await fingerprint()} login stale`
    await pane.type(`clear; ${command}`, 'Enter')
    await pane.until(/Password of stale/)
    await pane.type(right, 'Enter')
    await pane.until(/New password:/)
    await pane.type('renewed canary 0902', 'Enter')
    await pane.until(/The same again:/)
    await pane.type('renewed canary 0902', 'Enter')
    expect(await pane.until(/as stale \(viewer\)/)).not.toContain('canary')
    await pane.close()
  })

  it('no is no', async () => {
    await forgetAll()
    const pane = await openPane(other, 80)
    await pane.type(`edgehostctl --host ${address} status; echo ended with $?`, 'Enter')
    await pane.until(/\[y\/N\]/)
    await pane.type('', 'Enter')
    await pane.until(/^ended with 5$/m)
    await pane.close()
  })

  it.each([80, 120])('status fits %d columns, in colours', async (columns) => {
    const pane = await openPane(host, columns)
    await pane.type('clear; edgehostctl status', 'Enter')
    await pane.until(/Next: [^]*\n\$$/)
    const text = await pane.text()
    expect(await pane.unbroken()).toBe(text)
    expect(settle(text)).toBe(columns === 80 ? narrow : broad)
    expect(await pane.coloured()).toContain('\u001b[32m')
    await pane.type('clear; NO_COLOR=1 edgehostctl status', 'Enter')
    await pane.until(/Next: [^]*\n\$$/)
    expect(await pane.coloured()).not.toContain('\u001b[')
    await pane.type('clear; edgehostctl audit list --limit=20', 'Enter')
    await pane.until(/^TIME[^]*\n\$$/m)
    expect(await pane.unbroken()).toBe(await pane.text())
    await pane.close()
  })

  it('completes with Tab', async () => {
    const pane = await openPane(host, 80)
    await pane.type('source <(edgehostctl completion bash)', 'Enter')
    await pane.until(/\n\$ ?$/)
    await pane.type('edgehostctl aud', 'Tab')
    await pane.until(/edgehostctl audit ?$/)
    await pane.type('ver', 'Tab')
    await pane.until(/edgehostctl audit verify ?$/)
    await pane.close()
  })
})

/** What is another on each machine becomes one that is always the same. */
function settle(text: string): string {
  return text
    .replace(/^.*\$.*\n/, '')
    .replace(/\n\$ ?$/, '')
    .replace(/(?<=Host: ).*/, 'HOST')
    .replace(/edge-[0-9a-f]+/, 'edge-ID')
    .replace(/(?<=Uptime: ).*/, 'UPTIME')
    .replace(/(?<=Certificate: ).*/, 'CERTIFICATE')
    .replaceAll(/[0-9A-F]{2}(:[0-9A-F]{2}){15,}/g, (found) => found.replaceAll(/[0-9A-F]{2}/g, 'XX'))
    .replace(/(?<=edgehostd )\d+\.\d+\.\d+/, 'VERSION')
    .replace(/(?<=Disk: )[^]*(?=\n *Sessions)/, 'DISKS')
    .replace(/(?<=Facts: )[^]*(?=\n *Disk)/, 'FACTS')
    .replace(/(?<=Sessions: ).*/, 'SESSIONS')
    .replace(/(?<=Errors: )[^]*(?=\n *Next)/, 'ERRORS')
    .replace(/(?<=Next: )[^]*/, 'NEXT')
}

const top = `        Host: HOST
          ID: edge-ID
       State: running
        Mode: airgap, managed here
     Version: edgehostd VERSION
      Uptime: UPTIME
     Address: https://10.78.0.1:5080
 Certificate: CERTIFICATE
`
const bottom = `       Facts: FACTS
        Disk: DISKS
    Sessions: SESSIONS
      Errors: ERRORS
        Next: NEXT`
const bytes = (number: number) => Array.from({ length: number }, () => 'XX').join(':')
const narrow = `${top} Fingerprint: ${bytes(16)}:\n              ${bytes(16)}\n${bottom}`
const broad = `${top} Fingerprint: ${bytes(32)}\n${bottom}`
