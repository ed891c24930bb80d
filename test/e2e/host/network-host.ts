import { spawn, type ChildProcess } from 'node:child_process'
import { eventually } from './eventually.ts'
import { plainGround, type Ground } from './ground.ts'
import { bootHost, type Host } from './host.ts'
import { run, type Ended } from './process.ts'
import { lowerFolder } from './roots.ts'

/** Its management link is host0, at 192.0.2.10; eth2 is another one. */
export interface NetworkHost extends Host {
  /** Puts on the links what the owner of them has not made. @param link that of the management address */
  addForeign(link?: string): Promise<void>
  /** Links, addresses, routes, rules and DNS, without lifetimes and counters. */
  snapshot(): Promise<string>
  /** State and reason of a change, as the program has written them: `open applying`, `open trial`, `reverted deadline`… */
  stateOf(uid: string): Promise<string>
  /** Whether the neighbour of the host has an answer of this address. */
  reaches(address: string): Promise<boolean>
  /** The root filesystem of the neighbour, on the test machine. */
  readonly tree: string
  /** Runs a program beside the neighbour. */
  neighbour(...args: string[]): Promise<Ended>
}

/** Who may have the links of a host. */
export type Owner = 'networkd' | 'netplan' | 'networkmanager' | 'ifupdown'

export const gateway = '192.0.2.1'

/** A shell script that makes the networks of the neighbour. */
export const neighbourNetworks = `
for bridge in edge0 edge1; do ip link add $bridge type bridge; ip link set $bridge up; done
ip address add ${gateway}/24 dev edge0; ip address add 198.51.100.1/24 dev edge0; ip address add 203.0.113.1/24 dev edge1
`

// The neighbour is in the network namespace of the process that holds the host, at the other end of its cables.
const ground: Ground = {
  ...plainGround,
  namespaces: ['--net'],
  hasClients: true,
  prepare: `
ip link set lo up
${neighbourNetworks}`,
  nspawn: () => ['--network-bridge=edge0', '--network-veth-extra=cable2:eth2'],
}

/** Starts a program beside the neighbour; it ends with the test. @param holder a process in its network namespace */
const startBeside = (holder: number, ...args: string[]): ChildProcess =>
  spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', '-t', String(holder), '-n', ...args], {
    stdio: 'ignore',
  })

/** Puts the other end of the second cable into its network at each boot of the host. */
const startCable = (holder: number) =>
  startBeside(
    holder,
    ...['bash', '-c', 'while sleep 0.1; do ip link set cable2 master edge1 up 2> /dev/null || true; done'],
  )

/** Starts the DHCP server of the neighbour, in the network of the management address. */
export const startDhcp = async (holder: number): Promise<ChildProcess> =>
  startBeside(
    holder,
    ...['chroot', await lowerFolder('network'), 'dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null'],
    ...['--interface=edge0', '--bind-interfaces', '--port=0', '--leasefile-ro', '--user=root', '--pid-file='],
    ...['--no-ping', '--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h', `--dhcp-option=3,${gateway}`],
  )

const uuids: Readonly<Record<string, string>> = {
  host0: '5a8f6f8e-0f3c-4c0e-9f55-2f6a4e2c1a01',
  eth2: '5a8f6f8e-0f3c-4c0e-9f55-2f6a4e2c1a02',
}

/** The files of an administrator who gave both links an address by this backend, and the commands that make it their owner. */
const configurations: Readonly<
  Record<Owner, { readonly files: Readonly<Record<string, string>>; readonly begin: string }>
> = {
  networkd: {
    files: {
      '/etc/systemd/network/20-host0.network': `[Match]\nName=host0\n[Network]\nAddress=192.0.2.10/24\nAddress=fd00:1::10/64\nGateway=${gateway}\nIPv6AcceptRA=no\n`,
      '/etc/systemd/network/20-eth2.network':
        '[Match]\nName=eth2\n[Network]\nAddress=203.0.113.10/24\nIPv6AcceptRA=no\n',
    },
    begin: 'systemctl enable --now systemd-networkd systemd-resolved',
  },
  netplan: {
    files: {
      '/etc/netplan/50-plant.yaml': `# the plant\nnetwork:\n  version: 2\n  ethernets:\n    host0:\n      addresses: [192.0.2.10/24, "fd00:1::10/64"]\n      routes: [{to: default, via: ${gateway}}]\n    eth2:\n      addresses: [203.0.113.10/24]\n`,
    },
    // The reload before it runs the generator of netplan.
    begin: 'systemctl enable --now systemd-networkd systemd-resolved',
  },
  ifupdown: {
    files: {
      '/etc/network/interfaces': `auto lo\niface lo inet loopback\n\n${ifupdownStanza('host0', '192.0.2.10/24', gateway)}iface host0 inet6 static\n  address fd00:1::10/64\n\n${ifupdownStanza('eth2', '203.0.113.10/24')}`,
    },
    begin: 'systemctl enable --now networking',
  },
  networkmanager: {
    files: {
      '/etc/NetworkManager/system-connections/host0.nmconnection': nmConnection(
        'host0',
        `method=manual\naddress1=192.0.2.10/24,${gateway}`,
      ),
      '/etc/NetworkManager/system-connections/eth2.nmconnection': nmConnection(
        'eth2',
        'method=manual\naddress1=203.0.113.10/24',
      ),
      // Debian leaves links of containers to others.
      '/etc/udev/rules.d/99-managed.rules': 'SUBSYSTEM=="net", ENV{NM_UNMANAGED}="0"\n',
      '/etc/NetworkManager/conf.d/managed.conf':
        '[main]\nplugins=keyfile\nno-auto-default=*\n[keyfile]\nunmanaged-devices=none\n[device]\nmatch-device=*\nmanaged=1\n',
    },
    begin: 'systemctl enable --now NetworkManager',
  },
}

function ifupdownStanza(link: string, address: string, via = ''): string {
  return `auto ${link}\niface ${link} inet static\n  address ${address}\n${via && `  gateway ${via}\n`}\n`
}

function nmConnection(link: string, ipv4: string): string {
  return `[connection]\nid=${link}\nuuid=${uuids[link] ?? ''}\ntype=ethernet\ninterface-name=${link}\n[ipv4]\n${ipv4}\n[ipv6]\nmethod=manual\naddress1=fd00:${link === 'host0' ? 1 : 2}::10/64\n`
}

/** Adds what tests of the network do to a host, which has its neighbour in the network namespace of its clients. */
export async function asNetworkHost(host: Host): Promise<NetworkHost> {
  const tree = await lowerFolder('network')
  const network: NetworkHost = {
    ...host,
    tree,
    get leader() {
      return host.leader
    },
    addForeign: async (link = 'host0') => {
      await host.sh(foreign, link)
    },
    snapshot: () => host.sh(snapshot),
    stateOf: async (uid) => (await host.sh(stateOf, uid)).trim().split('\n').slice(0, 2).join(' '),
    async reaches(address) {
      // In one network namespace with both ends an address of the host is not one of this machine.
      const { exitCode } = await network.neighbour('chroot', tree, 'ping', '-c', '1', '-W', '1', address)
      return exitCode === 0
    },
    neighbour: async (...args) => run('nsenter', ['-t', String(host.clientNamespace()), '-n', ...args]),
  }
  return network
}

/** Makes a backend the owner of the links of a host; they are up when its neighbour reaches it. */
export async function giveLinksTo(network: NetworkHost, backend: Owner): Promise<void> {
  const { files, begin } = configurations[backend]
  for (const [path, text] of Object.entries(files)) await network.write(path, text, 0o600)
  await network.sh('chmod 644 /etc/systemd/network/* 2> /dev/null || true')
  await network.sh(`systemctl daemon-reload; systemctl enable --quiet dbus.socket; ${begin}`)
  await eventually(async () => {
    if (!(await network.reaches('192.0.2.10'))) throw new Error('the host does not answer at 192.0.2.10')
  }, 30_000)
}

/** Boots a host whose links a backend owns. */
export async function bootNetworkHost(backend: Owner): Promise<NetworkHost> {
  const host = await bootHost({ lower: 'network', ground })
  const holder = host.clientNamespace()
  const neighbours = [startCable(holder), await startDhcp(holder)]
  const network: NetworkHost = {
    ...(await asNetworkHost(host)),
    get leader() {
      return host.leader
    },
    async unplug() {
      neighbours.forEach((each) => each.kill('SIGKILL'))
      await host.unplug()
    },
  }
  try {
    await host.sh('ip link set lo up')
    await giveLinksTo(network, backend)
  } catch (error) {
    await network.unplug()
    throw error
  }
  return network
}

const foreign = `
ip address add 192.0.2.200/32 dev $1; ip address add fd00:98::1/64 dev $1 nodad; ip address add fd00:99::1/64 dev eth2 nodad
ip address add 203.0.113.200/32 dev eth2
ip route add 10.244.1.0/24 via ${gateway} dev $1; ip route add 10.244.2.0/24 via 203.0.113.1 dev eth2
ip rule add pref 1000 from 10.244.0.0/16 lookup main
`

const snapshot = `
ip -o link show | sed -E 's/^[0-9]+: //; s/@if[0-9]+//; s/ (qdisc|qlen|link-netnsid) [^ ]+//g; s/ group default//' | tr -s ' \\\\' ' ' | sort
for bond in /sys/class/net/*/bonding; do
  [ ! -d $bond ] || echo "$bond $(cat $bond/mode $bond/miimon | paste -sd' ') of $(xargs -n1 < $bond/slaves | sort | paste -sd' ')"
done
ip -o address show | grep -v ' dynamic ' | sed -E 's/^[0-9]+: //; s/valid_lft .*//; s/ nodad//' | tr -s ' \\\\' ' ' | sort
ip -o -4 address show dynamic | awk '{print $2 " by DHCP"}'
for family in -4 -6; do
  ip $family -o route show table all | grep -vE '^(local|broadcast|multicast|anycast) ' |
    sed -E 's/ expires [^ ]*//; s/ (linkdown|src [^ ]+)//; s/proto dhcp .*/proto dhcp/' | tr -s ' \\\\' ' ' | sort
done
ip rule show; ip -6 rule show
grep -v '^#' /etc/resolv.conf 2> /dev/null || true
grep -v '^#' /run/systemd/resolve/resolv.conf 2> /dev/null || true
`

const stateOf = `
if [ -e /run/edgehostd-network/ended/$1 ]; then cat /run/edgehostd-network/ended/$1
elif [ -e /var/lib/edgehostd/network/ended/$1 ]; then cat /var/lib/edgehostd/network/ended/$1
elif [ "$(cat /run/edgehostd-network/trial/uid 2> /dev/null)" = "$1" ]; then
  cd /run/edgehostd-network/trial
  if [ -e reverting ]; then state=reverting; elif [ -e confirming ]; then state=confirming
  elif [ -e applied ]; then state=trial; else state=applying; fi
  printf 'open\\n%s\\n' $state
else echo unknown; fi
`
