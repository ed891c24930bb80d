import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type {
  ConnectivityCheck,
  FileMetadataList,
  LogEntry,
  PingResponse,
  TraceRouteResponse,
} from '../../src/diagnosis/schemas.ts'
import { reserved } from '../../src/system/lasting/run-files.ts'
import { eventually } from './host/eventually.ts'
import { installDebian } from './host/debian-packages.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'

// Files, connections and logs of a booted host whose daemon is in its sandbox; its neighbours are in a network namespace.

const right = 'diagnosis canary 2811'
const host0 = '/v1/edge-mgmt/edgehosts/current'
const connectivity = '/v1/edge-mgmt/edgehosts/connectivity'
const neighbours = ['10.77.0.2', 'fd77::2']

let host: Edgehostd
let token: string
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  token = (await host.openSession('chief', right)).token
})
afterAll(() => host.unplug())

const get = async <T>(path: string) => {
  const reply = await host.http('GET', path, { token })
  expect(reply, path).toMatchObject({ status: 200 })
  return reply.json as T
}

describe('files', () => {
  it('the package makes the folder, and only regular files with one name of root or for others are given', async () => {
    await host.sh(`
      cd /var/log/files
      echo content > app.log
      printf secret > /root/secret; ln -s /root/secret link; ln /root/secret hard
      mkfifo pipe; mknod null c 1 3; mkdir folder; echo x > folder/x
      echo mine > own; chown 12345 own; chmod 600 own
    `)
    const { files, omitted } = await get<FileMetadataList>(`${host0}/file-download/files`)
    expect(files.map(({ fileName, size }) => [fileName, size])).toEqual([
      ['app.log', '8'],
      ['own', '5'],
    ])
    expect(omitted).toBe(5)
    for (const name of ['link', 'hard', 'pipe', 'null', 'folder', '..%2f..%2f..%2fetc%2fshadow'])
      expect(await host.http('GET', `${host0}/file-download/${name}`, { token }), name).toMatchObject({
        status: 404,
      })
    expect(await host.http('GET', `${host0}/file-download/own`, { token })).toMatchObject({
      status: 409,
      json: { code: 'FileNotReadable' },
    })
  })

  it('a file that grows is downloaded up to its size at the beginning, by the command line too', async () => {
    await host.sh(`
      head -c 3000000 /dev/zero | tr '\\0' a > /var/log/files/growing
      (for i in $(seq 200); do echo more >> /var/log/files/growing; sleep 0.05; done) >/dev/null 2>&1 &
      cd /root; edgehostctl host files get growing
    `)
    const size = Number(await host.sh('stat -c %s /root/growing'))
    expect(size).toBeGreaterThanOrEqual(3_000_000)
    expect(
      await host.sh('cmp -n "$(stat -c %s /root/growing)" /root/growing /var/log/files/growing; echo $?'),
    ).toBe('0\n')
    expect(await host.sh('edgehostctl host files list')).toMatch(/growing/)
  })
})

describe('connections', () => {
  it('without the programs the packages are named', async () => {
    for (const [path, name] of [
      ['ping', 'iputils-ping'],
      ['traceroute', 'traceroute'],
    ])
      expect(await host.http('GET', `${connectivity}/${path}?endpoint=10.77.0.2`, { token })).toMatchObject({
        status: 409,
        json: { code: 'ToolMissing', details: { tool: path, package: name } },
      })
  })

  it('neighbours answer by IPv4 and IPv6, in a unit with a user of its own and one capability', async () => {
    await installDebian(host, 'iputils-ping')
    await installDebian(host, 'traceroute')
    for (const neighbour of neighbours) {
      const { pingHostStatus, result } = await get<Required<PingResponse>>(
        `${connectivity}/ping?endpoint=${encodeURIComponent(neighbour)}&structured=true`,
      )
      expect(result, pingHostStatus).toMatchObject({ address: neighbour, isReachable: true, received: 5 })
      expect(pingHostStatus).toContain('5 packets transmitted')
      const traced = await get<Required<TraceRouteResponse>>(
        `${connectivity}/traceroute?endpoint=${encodeURIComponent(neighbour)}&structured=true`,
      )
      expect(traced.result, traced.traceRouteStatus).toMatchObject({
        isReachable: true,
        hops: [{ number: 1, addresses: [neighbour] }],
      })
    }
    // What the unit is, while it runs.
    await host.sh(
      'mv /usr/bin/ping /usr/bin/ping.real; printf "#!/bin/sh\\ncat /proc/self/status\\n" > /usr/bin/ping; chmod 755 /usr/bin/ping',
    )
    const { pingHostStatus } = await get<PingResponse>(`${connectivity}/ping?endpoint=10.77.0.2`)
    await host.sh('mv /usr/bin/ping.real /usr/bin/ping')
    expect(pingHostStatus).toMatch(/^NoNewPrivs:\t1$/m)
    for (const kind of ['CapEff', 'CapBnd'])
      expect(pingHostStatus).toMatch(new RegExp(`^${kind}:\\t0000000000002000$`, 'm'))
    const [, uid] = /^Uid:\t(\d+)/m.exec(pingHostStatus) ?? []
    expect(Number(uid)).toBeGreaterThan(60_000)
  })

  it('an address without a machine, and a size that a neighbour takes, are told', async () => {
    const { result } = await get<Required<PingResponse>>(
      `${connectivity}/ping?endpoint=10.77.9.9&structured=true`,
    )
    expect(result).toMatchObject({
      isReachable: false,
      next: expect.stringContaining('traceroute') as string,
    })
    const mtu = await get<ConnectivityCheck>(`${connectivity}/check?kind=mtu&target=10.77.0.2`)
    expect(mtu.stages.at(-1)).toMatchObject({ name: 'mtu', status: 'ok' })
    expect(mtu.stages.at(-1)?.message).toContain('1500 bytes')
    await host.sh('ip link set host0 mtu 1400')
    const less = await get<ConnectivityCheck>(`${connectivity}/check?kind=mtu&target=10.77.0.2`)
    await host.sh('ip link set host0 mtu 1500')
    expect(less.stages.at(-1)?.message).toContain('1400 bytes')
    const own = await get<ConnectivityCheck>(`${connectivity}/check?kind=tls&target=127.0.0.1:5080`)
    expect(own).toMatchObject({ isOk: true, next: expect.stringContaining('certificate') as string })
    expect(
      (await get<ConnectivityCheck>(`${connectivity}/check?kind=registry&target=http://127.0.0.1:5081`)).isOk,
    ).toBe(true)
    expect(await host.run(['edgehostctl', 'network', 'check', '10.77.0.2:9', '--kind', 'tcp'])).toMatchObject(
      {
        exitCode: 1,
        stdout: expect.stringContaining('nothing listens on port 9') as string,
      },
    )
  })
})

describe('logs', () => {
  const secrets = [
    ...['hunter2one', 'hunter2two', 'hunter2three', 'hunter2four', 'hunter2five', 'hunter2six'],
    ...['hunter2seven', 'hunter2eight', 'hunter2nine', 'hunter2ten', 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'],
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl',
  ]
  const lines = [
    ...['password=hunter2one', '"password": "hunter2two"', 'token: hunter2three', 'passphrase=hunter2four'],
    ...[
      'Authorization: Bearer hunter2five',
      'https://anna:hunter2six@registry.example/x',
      'kubeadm --token hunter2seven',
    ],
    ...['secret="hunter2eight"', 'cookie=hunter2nine', '--certificate-key hunter2ten'],
    ...['-----BEGIN PRIVATE KEY-----', 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC', '-----END PRIVATE KEY-----'],
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl',
  ]

  it('of twelve secrets that a program has printed none is shown, neither at once nor to a follower', async () => {
    await host.write('/root/lines', `${lines.join('\n')}\nthe last line\n`)
    await host.sh('systemd-run --quiet --wait --unit=kubelet cat /root/lines; journalctl --sync')
    const reply = await host.http('GET', `${host0}/logs?unit=kubelet&lines=50`, { token })
    expect(reply).toMatchObject({ status: 200 })
    expect(reply.text).toContain('the last line')
    expect(secrets.filter((secret) => reply.text.includes(secret))).toEqual([])
    const entries = reply.text
      .trim()
      .split('\n')
      .map((each) => JSON.parse(each) as LogEntry)
    expect(entries.every(({ unit }) => unit === 'kubelet')).toBe(true)

    await host.sh(`(timeout 60 edgehostctl logs -f --unit kubelet > /root/followed 2>&1 &)
      lines() { grep -c 'the last line' /root/followed; }
      for i in $(seq 100); do [ "$(lines)" -ge 1 ] && break; sleep 0.2; done
      systemd-run --quiet --wait --unit=kubelet cat /root/lines
      for i in $(seq 100); do [ "$(lines)" -ge 2 ] && break; sleep 0.2; done
      [ "$(lines)" -eq 2 ]`)
    const followed = await host.sh('cat /root/followed')
    expect(secrets.filter((secret) => followed.includes(secret))).toEqual([])
  })

  it('lines of a step come to a follower while the step runs, without its secrets', async () => {
    const folder = '/var/lib/edgehostd/cluster/steps/e2e'
    const script =
      'for i in 1 2 3; do echo "step line $i --token hunter2eleven"; sleep 1; done; while [ ! -e /root/end ]; do sleep 0.1; done; echo last'
    const bootId = (await host.output(['cat', '/proc/sys/kernel/random/boot_id'])).trim()
    const order = {
      ...{ program: '/bin/sh', args: ['-c', script], environment: {}, timeoutMs: 120_000 },
      ...{ bootId, startedAt: Date.now() },
    }
    await host.sh(`
      (timeout 100 curl --silent --no-buffer --unix-socket /run/edgehostd/edgehostd.sock \\
        'http://localhost${host0}/logs?unit=steps&follow=true' > /root/steps 2>&1 &)`)
    // As the daemon begins a step: the files, then the keeper in a unit.
    await host.write(`${folder}/order.json`, JSON.stringify(order), 0o600)
    for (const [name, text] of [
      ['input', ''],
      ['lock', reserved()],
      ['exit.reserved', reserved()],
    ] as const)
      await host.write(`${folder}/${name}`, text, 0o600)
    const program = ['/usr/lib/edgehostd/node', '/usr/lib/edgehostd/keeper.cjs', folder]
    await host.output(['systemd-run', '--quiet', '--unit=edgehostd-run-e2e', ...program])
    const shows = (text: string) =>
      eventually(async () => expect(await host.read('/root/steps')).toContain(text), 30_000)
    await shows('step line 1')
    await shows('step line 3')
    expect(await host.sh(`test -e ${folder}/exit || echo runs`)).toBe('runs\n')
    await host.write('/root/end', '')
    await shows('last')
    const followed = await host.read('/root/steps')
    expect(followed).toMatch(/^data: \{.*"unit":"steps"/m)
    expect(followed).not.toContain('hunter2')
    await host.sh(`rm -rf ${folder}`)
  })

  it('the support archive is generated in a unit of its own and downloaded, with the secrets masked', async () => {
    expect(await host.http('GET', `${host0}/download-logs`, { token })).toMatchObject({ status: 404 })
    const accepted = await host.http('POST', `${host0}/generate-logs`, { token })
    expect(accepted).toMatchObject({ status: 202 })
    const again = await host.http('POST', `${host0}/generate-logs`, { token })
    expect(again.json).toMatchObject({ uid: (accepted.json as { uid: string }).uid })
    const status = () => get<{ status: string; msg: string }>(`${host0}/generate-logs-status`)
    await expect
      .poll(async () => (await status()).status, { interval: 500, timeout: 120_000 })
      .toBe('Completed')
    await host.sh('cd /root; edgehostctl api get /v1/edge-mgmt/edgehosts/current/download-logs > logs.tar')
    expect(await host.sh('tar -tf /root/logs.tar')).toMatch(/\/README\.txt\n[^]*\/journal\.txt\n/)
    expect(await host.sh('tar -xOf /root/logs.tar | grep -c -e hunter2 || true')).toBe('0\n')
    expect(await host.sh('stat -c "%a" /var/lib/edgehostd/support/*.tar')).toBe('600\n')
  })

  it('viewers get none of it', async () => {
    await host.addUser({ name: 'guest', password: right })
    const guest = (await host.openSession('guest', right)).token
    for (const path of [`${host0}/logs`, `${host0}/download-logs`, `${connectivity}/ping?endpoint=127.0.0.1`])
      expect(await host.http('GET', path, { token: guest }), path).toMatchObject({ status: 403 })
  })
})

describe('SSH keys of the own account', () => {
  it('a key that a user sets lets it in by a real sshd, and no more when it is taken away', async () => {
    await installDebian(host, 'openssh-server')
    await host.sh(`
      mkdir -p /run/sshd; ssh-keygen -A; /usr/sbin/sshd -p 2222
      mkdir -p /home/guest; chown guest: /home/guest; usermod -d /home/guest guest
      ssh-keygen -q -t ed25519 -N '' -f /root/key
    `)
    const guest = (await host.openSession('guest', right)).token
    const key = (await host.sh('cat /root/key.pub')).trim()
    const enter = () =>
      host.run([
        ...['ssh', '-p', '2222', '-i', '/root/key', '-o', 'StrictHostKeyChecking=no', '-o', 'BatchMode=yes'],
        ...['guest@127.0.0.1', 'id', '-un'],
      ])
    expect((await enter()).exitCode).not.toBe(0)
    const set = (sshKeys: readonly string[]) =>
      host.http('PATCH', '/v1/users/current', { token: guest, body: { sshKeys } })
    const done = await set([key])
    expect(done, done.text).toMatchObject({ status: 204 })
    expect(await enter()).toMatchObject({ exitCode: 0, stdout: 'guest\n' })
    expect(await host.sh('stat -c "%U %a" /home/guest/.ssh /home/guest/.ssh/authorized_keys2')).toBe(
      'guest 700\nguest 600\n',
    )
    const shown = await host.http('GET', '/v1/users/current', { token: guest })
    expect(shown.json).toMatchObject({ sshKeys: [key] })
    const [, fingerprint = ''] = /(SHA256:\S+)/.exec(await host.sh('ssh-keygen -lf /root/key.pub')) ?? []
    expect(await host.sh('edgehostctl audit list -o json')).toContain(fingerprint)
    expect(await set([])).toMatchObject({ status: 204 })
    expect((await enter()).exitCode).not.toBe(0)
    const remote = 'edgehostctl --host localhost'
    await host.sh(
      `fingerprint=$(openssl x509 -noout -fingerprint -sha256 -in /var/lib/edgehostd/tls/certificate.pem | cut -d= -f2)
      printf '%s\\n' "$1" | ${remote} --fingerprint "$fingerprint" login guest --password-stdin`,
      right,
    )
    expect(await host.sh(`${remote} user ssh-keys --ssh-key /root/key.pub`)).toContain('ssh-ed25519')
    expect((await enter()).exitCode).toBe(0)
    expect(await host.sh(`${remote} user ssh-keys --none`)).toContain('none were set here')
    expect((await enter()).exitCode).not.toBe(0)
    await host.sh('rm -rf /home/guest/.ssh; ln -s /root/.ssh /home/guest/.ssh')
    expect(await set([key])).toMatchObject({ status: 409, json: { code: 'SshKeysRefused' } })
  })
})
