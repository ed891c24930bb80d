import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { stepProgram } from '../../../support/programs.ts'

// Root of a container may have no network of its own.
const mayIsolate = spawnSync('unshare', ['--net', '--mount', 'ip', 'link', 'set', 'lo', 'up']).status === 0
const missing = ['ip', 'iptables-nft', 'nft', 'unshare'].filter(
  (name) => !['/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((folder) => existsSync(`${folder}/${name}`)),
)

// A network and folders of its own, which end with the script: nothing of this machine is changed.
const isolated = `
set -eu
# In a container, that of the machine may be one to read only.
mount -t proc proc /proc
for folder in /etc /run /opt /var/lib /var/log /usr/libexec; do mount -t tmpfs tmpfs $folder; done
mkdir -p /etc/cni/net.d /var/lib/cni /var/lib/kubelet /run/netns
mount --make-shared /run/netns 2>/dev/null || mount --bind --make-shared /run/netns /run/netns
ip link set lo up
ip link add plant0 type bridge; ip link set plant0 up; ip addr add 172.30.0.1/24 dev plant0
ip route add 172.31.0.0/24 via 172.30.0.2
iptables-nft -A INPUT -m comment --comment 'plant "floor" -j KUBE-SERVICES' -j ACCEPT
iptables-nft -t nat -A POSTROUTING -s 172.30.0.0/24 -j MASQUERADE
nft 'add table inet plant'
echo '{"name": "plant"}' > /etc/cni/net.d/20-plant.conflist
act() { "$NODE" "$STEP" "$1"; }
record() { echo '{"file": "/var/lib/'$1'.json"}' | act record-host; }
restore() { echo '{"file": "/var/lib/host-record.json", "config": "clusterConfiguration: {networking: {podSubnet: 10.244.0.0/16}}"}' | act restore-host; }
before() { record host-record > /dev/null; cp /var/lib/host-record.json /var/lib/before.json; }
pollute() {
  ip link add cni0 type bridge; ip link set cni0 up; ip addr add 10.244.0.1/24 dev cni0
  ip netns add cni-0f7b1b51-6f44-4b3a-9c1e-0123456789ab
  ip link add vethab12cd34 type veth peer name eth0 netns cni-0f7b1b51-6f44-4b3a-9c1e-0123456789ab
  ip link set vethab12cd34 master cni0
  ip route add 10.244.1.0/24 via 172.30.0.3
  ip route add blackhole 10.244.2.0/26 proto 80
  ip rule add from 10.244.0.0/16 lookup 99 priority 900
  for program in iptables-nft ip6tables-nft; do
    $program -N KUBE-SERVICES; $program -N KUBE-FIREWALL; $program -A KUBE-FIREWALL -m mark --mark 0x8000 -j DROP
    $program -I INPUT -j KUBE-FIREWALL; $program -A FORWARD -m comment --comment 'kubernetes "service" portals' -j KUBE-SERVICES
    $program -A KUBE-SERVICES -j KUBE-FIREWALL
  done
  iptables-nft -t nat -A POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -m comment --comment "flanneld masq" -j MASQUERADE
  nft 'add table ip kube-proxy'
  echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
  mkdir -p /var/lib/kubelet/pods/a/volumes/b /etc/kubernetes/manifests /var/log/pods/a
  mount -t tmpfs tmpfs /var/lib/kubelet/pods/a/volumes/b; touch /var/lib/kubelet/pods/a/volumes/b/secret
  echo x > /etc/cni/net.d/10-net.conflist; mv /etc/cni/net.d/20-plant.conflist /etc/cni/net.d/20-plant.conflist.bak
}
after() { record after > /dev/null; }
`

/** Runs a script and gives its output; a step that fails does not end it. */
function run(script: string): string {
  const { stdout, stderr } = spawnSync(
    'unshare',
    ['--net', '--mount', '--propagation', 'private', '--', 'bash', '-c', isolated + script],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE: process.execPath, STEP: stepProgram() },
    },
  )
  expect(stderr).toBe('')
  return stdout
}

const stateOf = (output: string, name: string): unknown => {
  const line = output.split('\n').find((each) => each.startsWith(`${name} `))
  return (JSON.parse(line?.slice(name.length + 1) ?? '{}') as { state: unknown }).state
}
const show = (name: string) => `echo "${name} $(cat /var/lib/${name}.json)"\n`

it.skipIf(!mayIsolate || missing.length > 0)(
  'the host is as it was recorded after a restore, and what its owner added stays and is named',
  () => {
    const output = run(`
      before; pollute
      iptables-nft -A FORWARD -d 198.51.100.7 -j DROP; ip route add 192.0.2.0/24 via 172.30.0.2
      restore; test ! -e /var/lib/host-record.json; restore
      iptables-nft -D FORWARD -d 198.51.100.7 -j DROP; ip route del 192.0.2.0/24
      after
      ${show('before')} ${show('after')}`)
    expect(stateOf(output, 'after')).toEqual(stateOf(output, 'before'))
    expect(stateOf(output, 'before')).toMatchObject({ links: [{ name: 'lo' }, { name: 'plant0' }] })
    const lines = output.split('\n')
    expect(lines.filter((line) => line.startsWith('left as it is'))).toEqual([
      'left as it is: iptables-nft filter rule -A FORWARD -d 198.51.100.7/32 -j DROP',
      'left as it is: route 192.0.2.0/24 via 172.30.0.2 dev plant0',
    ])
    expect(lines).toContain('taken away: network namespace cni-0f7b1b51-6f44-4b3a-9c1e-0123456789ab')
    expect(lines).toContain('put back: net.ipv4.conf.all.route_localnet = 0')
    expect(lines).toContain('the host has no record')
  },
)

it.skipIf(!mayIsolate || missing.length > 0)(
  'the ends of a pod go although a process that hangs keeps its network namespace',
  () => {
    const output = run(`
      before; pollute
      ip netns exec cni-0f7b1b51-6f44-4b3a-9c1e-0123456789ab sleep 1000 > /dev/null 2>&1 & sleeper=$!
      restore; after; kill $sleeper
      ${show('before')} ${show('after')}`)
    expect(stateOf(output, 'after')).toEqual(stateOf(output, 'before'))
    expect(output).not.toContain('left as it is')
  },
)

it.skipIf(!mayIsolate || missing.length > 0)(
  'a record stays as it was first made; with one that cannot be read only names decide',
  () => {
    const output = run(`
      before; pollute; record host-record
      cmp /var/lib/host-record.json /var/lib/before.json && echo same
      echo '{"version": 1' > /var/lib/host-record.json
      restore; after
      ${show('after')}`)
    const lines = output.split('\n')
    expect(lines.slice(0, 2)).toEqual(['the host is recorded already', 'same'])
    expect(lines[2]).toMatch(
      /host-record\.json cannot be read: only what has a name of Kubernetes is taken away$/,
    )
    expect(lines).toContain('taken away: interface cni0')
    // Not even the file of the network plugin: without the record it may be another runtime's.
    expect(stateOf(output, 'after')).toMatchObject({
      links: [{ name: 'lo' }, { name: 'plant0' }],
      networkConfigs: { '10-net.conflist': 'x\n', '20-plant.conflist.bak': '{"name": "plant"}\n' },
    })
  },
)

it.skipIf(!mayIsolate || missing.length > 0)(
  'what cannot be taken away is named with the reason, everything else goes, and the record stays',
  () => {
    const output = run(`
      before; pollute
      cd /var/lib/kubelet/pods/a/volumes/b; restore && echo done || echo failed; cd /
      test -e /var/lib/host-record.json && echo kept
      ls /etc/kubernetes /var/log/pods 2>/dev/null || echo gone`)
    const lines = output.trim().split('\n')
    expect(lines.slice(-3)).toEqual(['failed', 'kept', 'gone'])
    expect(lines.at(-4)).toMatch(
      /^not all of the cluster could be taken from this host \(\/var\/lib\/kubelet\/pods: umount: .*busy.*; take it away by hand, the deletion is then continued$/,
    )
  },
)

it.skipIf(!mayIsolate || missing.length > 0)(
  'on a host without iptables the rules that kube-proxy has made are taken away by nft',
  () => {
    const output = run(`
      hide() { for each in $(readlink -f /usr/sbin/iptables-nft) $(readlink -f /usr/sbin/iptables-legacy) $(readlink -f /usr/sbin/iptables); do mount --bind /dev/null $each; done; }
      unhide() { for each in $(readlink -f /usr/sbin/iptables-nft) $(readlink -f /usr/sbin/iptables-legacy) $(readlink -f /usr/sbin/iptables); do umount $each; done; }
      iptables-nft-save > /var/lib/rules.before
      hide; before; unhide; pollute; hide; restore; after; unhide
      ${show('before')} ${show('after')}
      echo rules; iptables-nft-save | grep -v '^[#:]'; ip6tables-nft-save | grep -v '^[#:]'`)
    expect(stateOf(output, 'before')).toMatchObject({ filters: [{ program: 'nft' }] })
    expect(stateOf(output, 'after')).toEqual(stateOf(output, 'before'))
    const rules = output
      .split('\nrules\n')[1]
      ?.split('\n')
      .filter((line) => line.startsWith('-A'))
    expect(rules).toEqual([
      '-A INPUT -m comment --comment "plant \\"floor\\" -j KUBE-SERVICES" -j ACCEPT',
      '-A POSTROUTING -s 172.30.0.0/24 -j MASQUERADE',
    ])
  },
)
