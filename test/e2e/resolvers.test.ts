import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterDryRun } from '../../src/cluster/schemas.ts'
import { isKitMissing, kit } from '../support/kubernetes-kit.ts'
import { configurationOf } from './cluster/cluster-host.ts'
import { writeDefinition } from './cluster/plant-files.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { clusterGround } from './host/ground.ts'

// Hosts as they are found in the field: no cluster is made, since its CoreDNS would end, or would know no name.

let host: Edgehostd
let cluster: object

beforeAll(async () => {
  if (isKitMissing()) return
  host = await bootEdgehostd({ lower: 'machine', ground: clusterGround })
  const file = join(host.folder, 'definition.tgz')
  await writeDefinition((await kit())!, file)
  await host.addUser({ name: 'chief', password: 'right canary 1302', groups: ['sudo'] })
  const { token } = await host.openSession('chief', 'right canary 1302')
  const path = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
  const reply = await host.http('POST', path, { token, form: [`uploadFile=@${file}`] })
  expect(reply, reply.text).toMatchObject({ status: 201 })
  cluster = configurationOf(reply.json.uploadPath as string)
  await host.write('/root/cluster.json', JSON.stringify(cluster), 0o600)
})
afterAll(() => (host as Edgehostd | undefined)?.unplug())

/** What a dry run says of the name servers of the host. */
async function judged(): Promise<readonly string[]> {
  const { stdout, stderr } = await host.run([
    ...['edgehostctl', '-o', 'json', 'cluster', 'create', '/root/cluster.json', '--dry-run'],
  ])
  if (!stdout.startsWith('{')) throw new Error(stderr)
  const { problems } = JSON.parse(stdout) as ClusterDryRun
  return problems.flatMap(({ code, severity, message }) =>
    code === 'ResolverUnusable' ? [`${severity}: ${message}`] : [],
  )
}

/** Whether the C library of the host asks this server for a name. */
async function isAsked(): Promise<boolean> {
  const requests = await host.sh(`
    ip address add 10.77.0.53/32 dev lo 2> /dev/null || true
    rm -f /run/asked
    systemd-run --quiet --collect --unit=name-server socat -u UDP-RECV:53,bind=10.77.0.53 CREATE:/run/asked
    until ss -Hlun | grep -q '10.77.0.53:53'; do :; done
    getent ahosts probe.plant.example > /dev/null || true
    echo after-it | socat -u - UDP-SENDTO:10.77.0.53:53
    until grep -aq after-it /run/asked; do :; done
    systemctl stop name-server
    grep -ao probe /run/asked || true`)
  return requests !== ''
}

describe.skipIf(isKitMissing())('a host without a usable name server', () => {
  it.each([
    ['an empty /etc/resolv.conf', ': > /etc/resolv.conf', /names no name server/],
    ['none', 'rm /etc/resolv.conf', /is not on this host/],
    ['its loopback only', 'echo nameserver 127.0.0.1 > /etc/resolv.conf', /is 127\.0\.0\.1: .*loop/],
    [
      'the stub of resolved without resolved',
      'echo nameserver 127.0.0.53 > /etc/resolv.conf',
      /is 127\.0\.0\.53: .*loop/,
    ],
    [
      'resolved that knows no server',
      `echo nameserver 127.0.0.53 > /etc/resolv.conf
       mkdir -p /run/systemd/resolve; printf '# No DNS servers known.\\nsearch .\\n' > /run/systemd/resolve/resolv.conf
       systemd-run --quiet --collect --unit=systemd-resolved sleep infinity`,
      /systemd-resolved has no name server/,
    ],
  ])('has %s: a dry run refuses the cluster, and says what to do', async (_what, script, reason) => {
    await host.sh(script)
    try {
      expect(await judged()).toEqual([expect.stringMatching(reason)])
      expect(await judged()).toEqual([expect.stringMatching(/^error: .*(write a line|DNS=)/)])
    } finally {
      await host.sh('systemctl stop systemd-resolved 2> /dev/null || true')
    }
  })
})

describe.skipIf(isKitMissing())('a line for a name server', () => {
  it.each([
    ['as it should be', 'nameserver 10.77.0.53', true, []],
    ['with a comment behind a blank', 'nameserver 10.77.0.53 # router', true, []],
    [
      'with a carriage return: pods get it, this host does not',
      'nameserver 10.77.0.53\\r',
      false,
      [/^warning: .*10\.77\.0\.53 counts for pods and not for this host/],
    ],
    [
      'with a port behind a number sign: neither takes it',
      'nameserver 10.77.0.53#53',
      false,
      [/^error: .*"10\.77\.0\.53#53" is no address/],
    ],
    ['with a comment and no blank', 'nameserver 10.77.0.53;router', false, [/^error: .*is no address/]],
  ] as const)(
    '%s is judged as the C library and the kubelet read it',
    async (_what, line, asked, problems) => {
      await host.sh(`printf 'options timeout:1 attempts:1\\n${line}\\n' > /etc/resolv.conf`)
      expect(await isAsked()).toBe(asked)
      expect(await judged()).toEqual(problems.map((each) => expect.stringMatching(each) as string))
    },
  )
})
