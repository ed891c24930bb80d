import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootCtlPair, type CtlPair } from './host/ctl-pair.ts'
import type { Edgehostd } from './host/edgehostd.ts'
import { asUser, type Ended } from './host/process.ts'

const right = 'operator canary $HOME %n 0901'
let pair: CtlPair
let host: Edgehostd
let other: Edgehostd
let address: string

beforeAll(async () => {
  pair = await bootCtlPair()
  ;({ host, other, address } = pair)
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'guest', password: right })
})
afterAll(() => pair.unplug())

const here: CtlPair['here'] = (...args) => pair.here(...args)
const there: CtlPair['there'] = (...args) => pair.there(...args)
const fingerprint = () => pair.fingerprint()
const logIn = async (user: string): Promise<Ended> =>
  other.run(
    [
      ...['edgehostctl', '--host', address, '--fingerprint', await fingerprint()],
      ...['login', user, '--password-stdin'],
    ],
    { input: `${right}\n` },
  )

/** The output of each command, over the socket and over the network. */
const online: readonly (readonly [string, RegExp])[] = [
  ['status', /^ *State: running$/m],
  ['host show', /^ *Processors: \d+$/m],
  ['host usage', /^ *Load: \d/m],
  ['session list', /^UID +USER +ROLE/],
  ['audit list --limit=3', /^TIME +WHO[^\n]*\n(20[^\n]*\n){3}$/],
  ['audit verify', /^ *Trail: whole and unaltered$/m],
  ['audit download --file=/tmp/audit.tar', /^$/],
  ['api get /v1/ping', /^\{"msg":"pong"\}$/],
  ['-o json host show', /^\{\n {2}"metadata"/],
  ['-o yaml audit verify', /^isIntact: true$/m],
]

describe('on the host, as root', () => {
  it.each(online)('on the host, as root: %s', async (line, shown) => {
    const ended = await here(...line.split(' '))
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stdout).toMatch(shown)
  })

  it.each([
    ['version', /^edgehostctl \d+\.\d+\.\d+\n$/],
    ['--version', /^edgehostctl \d/],
    ['help', /Exit codes:\n {2}0/],
    ['session list --help', /^Usage: edgehostctl session list/],
    ['completion bash', /^complete -F _edgehostctl edgehostctl$/m],
    ['config check', /^the configuration is good$/m],
  ])('on the host, a local command: %s', async (line, shown) => {
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

  it('login and logout say that root needs no login', async () => {
    for (const command of ['login', 'logout']) {
      const ended = await here(command)
      expect(ended.exitCode).toBe(2)
      expect(ended.stderr).toMatch(/needs no login.*root.*--host HOST/s)
    }
  })

  it('an ordinary user gets an error with the command to type', async () => {
    const ended = await host.run(asUser('guest', ['edgehostctl', 'status']))
    expect(ended.exitCode).toBe(4)
    expect(ended.stderr).toMatch(/permission denied.*sudo.*--host/s)
  })

  it('a stopped daemon is exit code 3, with the commands to type', async () => {
    await host.output(['systemctl', 'stop', 'edgehostd.socket', 'edgehostd.service'])
    const ended = await here('status')
    await host.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd.service'])
    expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
    expect(ended.stderr).toMatch(/systemctl status edgehostd\n.*journalctl -u edgehostd/s)
  })

  it('a daemon that hangs is noticed after 10 seconds, over the socket and over the network, and continues', async () => {
    const pid = await host.mainPid()
    await host.output(['systemctl', 'kill', '--signal=SIGSTOP', 'edgehostd'])
    // Both at once: systemd's watchdog would end a daemon that stands still for half a minute.
    const at = performance.now()
    const [near, far] = await Promise.all([here('audit', 'verify'), there('api', 'get', '/v1/ping')])
    const seconds = (performance.now() - at) / 1_000
    await host.output(['systemctl', 'kill', '--signal=SIGCONT', 'edgehostd'])
    for (const ended of [near, far]) {
      expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
      expect(ended.stderr).toMatch(/hangs.*10 seconds[^]*systemctl restart edgehostd/)
    }
    expect(seconds).toBeLessThan(30)
    expect(await here('status')).toMatchObject({ exitCode: 0 })
    expect(await host.mainPid(), await host.output(['journalctl', '--no-pager', '-n', '60'])).toBe(pid)
  })

  it.each([
    'status',
    'status -o json',
    'audit download --file=-',
    'support --file=-',
    'support -o json',
    'config check',
  ])('a full disk behind the standard output of %s is reported', async (line) => {
    // Waits for a daemon that is starting.
    await host.output(['systemctl', 'start', 'edgehostd'])
    const ended = await host.run(['sh', '-c', `cd /tmp; edgehostctl ${line} > /dev/full`])
    // Where the daemon is not there: why.
    const journal = ended.exitCode === 3 ? await host.output(['journalctl', '--no-pager', '-n', '60']) : ''
    expect(ended, journal).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^edgehost\w+: standard output cannot be written: no space left on device/m,
      ) as string,
    })
    const closed = await host.run(['sh', '-c', `edgehostctl ${line} >&-`])
    expect(closed).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/it is closed\n$/) as string })
  })

  it('the manual page and the completion are installed', async () => {
    expect(await host.sh('zcat /usr/share/man/man1/edgehostctl.1.gz')).toMatch(/^\.SH EXIT STATUS$/m)
    const complete = async (...words: string[]) =>
      host.sh(
        'source /usr/share/bash-completion/completions/edgehostctl; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _edgehostctl; echo "${COMPREPLY[@]}"',
        'edgehostctl',
        ...words,
      )
    expect(await complete('sess')).toBe('session\n')
    for (const noun of ['session', 'sessions'])
      expect(await complete(noun, '')).toBe('list revoke revoke-all\n')
    expect(await complete('--output', '=', 'y')).toBe('yaml\n')
  })
})

describe('from another host', () => {
  it('nothing is sent to a host whose key was not accepted', async () => {
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

  it.each(online)('from another host: %s', async (line, shown) => {
    const ended = await there(...line.split(' '))
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stdout).toMatch(shown)
  })

  it('api post, put, patch and delete work from another host', async () => {
    const reset = { username: 'no-such-user', oldPassword: right, newPassword: `${right} new` }
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

  it('session revoke ends the session of another user', async () => {
    const login = ['edgehostctl', 'api', 'post', '/v1/users/default/login', '--data', '-']
    const body = JSON.stringify({ username: 'guest', password: right })
    expect(await host.run(login, { input: body })).toMatchObject({ exitCode: 0 })
    const list = JSON.parse((await there('session', 'list', '-o', 'json')).stdout) as {
      items: { uid: string; userName: string }[]
    }
    const { uid } = list.items.find(({ userName }) => userName === 'guest')!
    expect(await there('session', 'revoke', uid)).toMatchObject({ exitCode: 0 })
    expect((await there('session', 'list')).stdout).not.toContain(uid)
  })

  it('session revoke ends one session, and its owner has to log in again', async () => {
    const list = JSON.parse((await there('session', 'list', '-o', 'json')).stdout) as {
      items: { uid: string; isCurrent: boolean }[]
    }
    const { uid } = list.items.find(({ isCurrent }) => isCurrent)!
    expect(await here('session', 'revoke', uid)).toMatchObject({ exitCode: 0 })
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

  it('a host with a renewed certificate is the same host', async () => {
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
    // Not even with --fingerprint.
    expect(await there('--fingerprint', await fingerprint(), 'status')).toMatchObject({ exitCode: 5 })
    expect(await other.sh('cat /root/.config/edgehostctl/sessions/*.json')).toBe(tokens)
    expect(await other.run(['edgehostctl', 'forget', address])).toMatchObject({ exitCode: 0 })
    expect(await logIn('chief')).toMatchObject({ exitCode: 0 })
    expect(await there('status')).toMatchObject({ exitCode: 0 })
  })

  it('a missing host is exit code 3', async () => {
    const ended = await other.run(['edgehostctl', '--host', '10.78.0.77', 'status'])
    expect(ended).toMatchObject({ exitCode: 3 })
  })
})
