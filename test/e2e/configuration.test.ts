import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ConfigurationDryRun, EdgeHostConfigurationStatus } from '../../src/configuration/schemas.ts'
import { installDebian } from './host/debian-packages.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

const right = 'right canary 0801'
// With what files and shells read in another way.
const secret = `pro"xy' %n canary 0802`
const path = '/v1/edge-mgmt/edgehosts/current/configurations'
const target = 'target.example'
const environmentFile = '/etc/edgehostd/proxy.env'
let host: Edgehostd
let token: string
let authority: string

/** A Squid with a login, and a TLS server whose authority no host knows; both on the host, the server on an address of no link. */
async function startServers(): Promise<void> {
  await host.sh(
    `
    ip link set lo up
    ip address show dev lo | grep -q 203.0.113.7 || ip address add 203.0.113.7/32 dev lo
    grep -q ${target} /etc/hosts || echo 203.0.113.7 ${target} >> /etc/hosts
    mkdir -p /root/tls; cd /root/tls
    if [ ! -e server.crt ]; then
      openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=authority of the plant' -keyout ca.key -out ca.crt \\
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
      openssl req -newkey rsa:2048 -nodes -subj /CN=${target} -keyout server.key -out server.csr
      printf 'subjectAltName=DNS:${target}' > server.ext
      openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 20 -extfile server.ext -out server.crt
      printf 'edge:%s\\n' "$(openssl passwd -apr1 "$1")" > /etc/squid/users
      chmod 644 /etc/squid/users
      cat > /etc/squid/squid.conf <<'END'
auth_param basic program /usr/lib/squid/basic_ncsa_auth /etc/squid/users
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
http_port 3128
END
    fi
    systemctl is-active --quiet squid || systemctl restart squid
    systemctl is-active --quiet tls-server ||
      systemd-run --quiet --unit=tls-server --collect --property=WorkingDirectory=/root/tls \\
        openssl s_server -accept 203.0.113.7:443 -cert server.crt -key server.key -www
  `,
    secret,
  )
  await eventually(() => host.sh('ss -ltn | grep -q :3128 && ss -ltn | grep -q 203.0.113.7:443'), 60_000)
}

beforeAll(async () => {
  // A wire does not outlast a power cut.
  host = await bootEdgehostd({ lower: 'machine', wire: false })
  await host.addUser({ name: 'olga', password: right, groups: ['sudo'] })
  await installDebian(host, 'squid')
  await startServers()
  authority = Buffer.from(await host.read('/root/tls/ca.crt')).toString('base64')
  // In the place of a kubelet, whose cluster this test has not: its unit alone counts here.
  await host.write('/etc/systemd/system/kubelet.service', '[Service]\nExecStart=/usr/bin/sleep infinity\n')
  await host.sh('systemctl daemon-reload; systemctl start containerd kubelet')
  token = await login()
}, 600_000)
afterAll(() => host.unplug())

const login = () => eventually(async () => (await host.openSession('olga', right)).token, 60_000)
const put = (body: object, query = '') => host.http('PUT', path + query, { token, body })
const proxied = () => ({
  httpProxy: `http://edge:${encodeURIComponent(secret)}@127.0.0.1:3128`,
  httpsProxy: `http://edge:${encodeURIComponent(secret)}@127.0.0.1:3128`,
  noProxy: '.plant.example',
  caCerts: [authority],
})
async function status(): Promise<EdgeHostConfigurationStatus> {
  const { json } = await host.http('GET', `${path}/status`, { token })
  return json as EdgeHostConfigurationStatus
}
const until = (state: EdgeHostConfigurationStatus['state']) =>
  eventually(async () => {
    expect(await status()).toMatchObject({ state })
  }, 60_000)
const pidOf = async (unit: string) =>
  (await host.output(['systemctl', 'show', '--property=MainPID', '--value', unit])).trim()
const environmentOf = async (unit: string) => {
  const text = await host.sh(`tr '\\0' '\\n' < /proc/${await pidOf(unit)}/environ`)
  return new Map(text.split('\n').map((line) => [line.split('=')[0]!, line.slice(line.indexOf('=') + 1)]))
}
const isTrusted = async () => {
  const shown = await host.sh(
    `openssl s_client -connect 203.0.113.7:443 -servername ${target} -verify_return_error </dev/null 2>&1 || true`,
  )
  return shown.includes('Verify return code: 0 (ok)')
}
const tunnels = async () =>
  (await host.sh(`grep -c 'CONNECT ${target}:443 edge' /var/log/squid/access.log || true`)).trim()
const check = async (kind: string) =>
  (
    await host.http(
      'GET',
      `/v1/edge-mgmt/edgehosts/connectivity/check?kind=${kind}&target=https://${target}`,
      {
        token,
      },
    )
  ).json as { stages: { name: string; status: string; message: string }[] }

it('a dry run names what restarts, and changes nothing', async () => {
  const reply = await put(proxied(), '?dryRun=true')
  expect(reply, reply.text).toMatchObject({ status: 200 })
  const plan = reply.json as ConfigurationDryRun
  expect(plan.restarts).toEqual(['containerd.service', 'kubelet.service'])
  expect(reply.text).not.toContain('canary')
  expect((await host.http('GET', path, { token })).json).toEqual({})
  expect((await status()).state).toBe('Not Configured')
  expect(await isTrusted()).toBe(false)
})

it('calls of the daemon go through the proxy with its login, and trust the authority; so do containerd and kubelet', async () => {
  const before = await check('platform')
  expect(before.stages.at(-1)?.message).toMatch(/does not know who issued/)
  expect(await tunnels()).toBe('0')
  const pids = [await pidOf('containerd'), await pidOf('kubelet')]
  const reply = await put(proxied())
  expect(reply, reply.text).toMatchObject({ status: 202 })
  await until('Configured')
  const after = await check('platform')
  expect(after.stages.find(({ name }) => name === 'route')?.message).toContain(
    'through the proxy 127.0.0.1:3128',
  )
  expect(after.stages.at(-1)?.message).toMatch(/answers, but not as a platform does/)
  expect(Number(await tunnels())).toBeGreaterThan(0)
  expect(await isTrusted()).toBe(true)
  for (const unit of ['containerd', 'kubelet']) {
    const environment = await environmentOf(unit)
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']) {
      const { username, password, host: at } = new URL(environment.get(name) ?? '')
      expect([username, decodeURIComponent(password), at]).toEqual(['edge', secret, '127.0.0.1:3128'])
    }
    expect(environment.get('NO_PROXY')).toMatch(
      /^\.plant\.example,localhost,127\.0\.0\.0\/8,.*\.svc,\.cluster\.local$/,
    )
  }
  expect([await pidOf('containerd'), await pidOf('kubelet')]).not.toEqual(pids)
  // A client of Go, or of any other language, gets through with what is in the file.
  const fetched = await host.sh(
    `set -a; . ${environmentFile}; curl --silent --show-error --cacert /etc/ssl/certs/ca-certificates.crt https://${target}/`,
  )
  expect(fetched).toContain('s_server')
})

it('no other user reads the password, and nothing that they may read has it', async () => {
  expect(await host.output(['stat', '--format=%a %U', environmentFile])).toBe('600 root\n')
  const pid = await pidOf('containerd')
  const seen = await host.sh(`
    runuser -u nobody -- sh -c '
      cat ${environmentFile} /proc/${pid}/environ 2>&1
      systemctl show containerd kubelet edgehostd
      systemctl cat containerd kubelet
      systemctl show-environment
      ps axeww
    ' 2>&1 || true`)
  expect(seen).toContain('Permission denied')
  expect(seen).toContain(`EnvironmentFiles=${environmentFile}`)
  expect(seen).not.toContain('canary')
  const shown = await host.http('GET', path, { token })
  expect(shown.json).toMatchObject({ httpsProxy: 'http://edge:********@127.0.0.1:3128' })
  const journal = await host.sh(
    'journalctl --no-pager --output=cat | grep -c "canary%200802\\|canary 0802" || true',
  )
  expect(journal.trim()).toBe('0')
  // The reply, sent back, is the same configuration.
  const again = await put(shown.json as object)
  expect(again.json).toMatchObject({ message: 'the configuration is so already' })
  expect((await environmentOf('containerd')).get('HTTPS_PROXY')).toContain('canary')
})

it.each(['kill', 'power cut'] as const)(
  'a %s in the middle leaves the old or the new, and the next start finishes it',
  async (how) => {
    for (const body of [{}, proxied()]) {
      const reply = await put(body)
      expect(reply, reply.text).toMatchObject({ status: 202 })
      if (how === 'kill') await host.output(['systemctl', 'kill', '--signal=KILL', 'edgehostd'])
      else {
        await host.cutPower()
        await host.sh('systemctl start containerd kubelet')
        await startServers()
      }
      token = await login()
      const isSet = 'caCerts' in body
      // Whatever is there is whole: nothing, or each of three variables in both spellings.
      const lines = await host.sh(`cat ${environmentFile} 2>/dev/null | wc --lines || true`)
      expect(['0', '6']).toContain(lines.trim())
      await until(isSet ? 'Configured' : 'Not Configured')
      expect(await isTrusted()).toBe(isSet)
      expect((await environmentOf('containerd')).has('HTTPS_PROXY')).toBe(isSet)
      expect((await environmentOf('kubelet')).has('HTTPS_PROXY')).toBe(isSet)
      const own = await host.sh(
        'ls /usr/local/share/ca-certificates /etc/ssl/certs | grep -c "^edgehostd-" || true',
      )
      expect(own.trim()).toBe(isSet ? '2' : '0')
    }
  },
)

it('edgehostctl sets a part, with the password from standard input, and shows it', async () => {
  const set = (...more: string[]) => host.output(['edgehostctl', 'configuration', 'set', ...more])
  await host.write('/root/password', `other canary\n`, 0o600)
  const said = await set(
    '--https-proxy',
    'http://edge@127.0.0.1:3128',
    '--password-file',
    '/root/password',
    '--no-proxy',
    'none',
  )
  expect(said).toBe('the configuration is in place\n')
  expect((await environmentOf('containerd')).get('HTTPS_PROXY')).toBe(
    'http://edge:other%20canary@127.0.0.1:3128',
  )
  // What was not named is as it was.
  expect(new URL((await environmentOf('containerd')).get('HTTP_PROXY') ?? '').password).toBe(
    new URL(proxied().httpProxy).password.replaceAll("'", '%27'),
  )
  const shown = await host.output(['edgehostctl', 'configuration', 'get'])
  expect(shown).toMatch(/HTTPS proxy: http:\/\/edge:\*{8}@127\.0\.0\.1:3128/)
  expect(shown).toMatch(/Authorities: 1/)
  await host.write('/root/all.yaml', 'noProxy: a.example\n')
  expect(await set('/root/all.yaml')).toBe('the configuration is in place\n')
  expect(await host.sh(`test ! -e ${environmentFile} && echo gone`)).toBe('gone\n')
  const refused = await host.sh(
    'edgehostctl configuration set --https-proxy http://edge:canary@p:1 2>&1 || echo $?',
  )
  expect(refused).toMatch(/use --password-file[^]*\n2\n$/)
})
