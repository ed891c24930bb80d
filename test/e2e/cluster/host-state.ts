import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Edgehostd } from '../host/edgehostd.ts'
import { eventually } from '../host/eventually.ts'
import { output } from '../host/process.ts'

/** What Kubernetes and its network change of a host; each a sorted list of lines. */
export type HostState = Readonly<Record<string, readonly string[]>>

// Independent of what the daemon records itself. Counters, times and what changes by itself are left out.
const readings: Readonly<Record<string, string>> = {
  // Without the number of the link, which only rises.
  links: 'ip -o link show | sed -E "s/^[0-9]+: //; s/@if[0-9]+//; s/qlen [0-9]+//"',
  addresses: 'ip -o address show | sed -E "s/^[0-9]+: //; s/(valid_lft|preferred_lft) [^ ]+//g"',
  routes: 'ip route show table all; ip -6 route show table all | sed -E "s/expires [^ ]+//"',
  rules: 'ip rule; ip -6 rule',
  neighbours: 'ip neigh show nud permanent; ip -d fdb 2> /dev/null || true',
  // Tables without rules and their chains of the kernel stay: nothing may delete a whole table.
  iptables:
    '{ iptables-save; ip6tables-save; iptables-legacy-save; ip6tables-legacy-save; } 2> /dev/null | ' +
    'grep -vE "^(#|\\*|COMMIT|:(INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING) ACCEPT)" | sed -E "s/\\[[0-9]+:[0-9]+\\]//"',
  nftables:
    'nft list tables | grep -vE "^table (ip|ip6|arp|bridge) (filter|nat|mangle|raw|security)$" | ' +
    'while read -r table; do nft --stateless list $table; done',
  ipsets: 'ipset list -name 2> /dev/null',
  queues: 'tc qdisc show; tc filter show dev host0 ingress; tc filter show dev host0 egress',
  // Others are those of the whole machine, whatever host sets them.
  sysctls:
    'sysctl -a 2> /dev/null | grep ^net\\. | grep -vE "nf_conntrack_(count|max|buckets)|tcp_(mem|fastopen_key)|stable_secret|netdev_"',
  units:
    'systemctl list-units --all --plain --no-legend --type=service,timer,socket,path,slice,scope | ' +
    'awk \'{print $1, $2, $3}\' | grep -vE "^(session-|user|systemd-(tmpfiles|hostnamed|timedated)|run-|edgehostd-(run|step)-)"',
  enabledUnits: "systemctl list-unit-files --plain --no-legend | awk '{print $1, $2}'",
  unitFiles: 'find /etc/systemd/system /run/systemd/system /run/systemd/transient -not -type d',
  // systemd leaves its namespace-dev where a service is killed before its program runs; dpkg notes what it unpacks for needrestart.
  files:
    'find /run /tmp /var/lib/kubelet /var/lib/etcd -printf "%y %m %p\\n" | ' +
    'grep -vE " /(run/(systemd|udev|log|user|edgehostd|dbus|initctl|utmp|xtables.lock|needrestart)|tmp/(systemd-private|namespace-dev)-[^/]*)(/|$)"',
  // Content, definitions and the database stay, and change.
  stateFolder:
    'find /var/lib/edgehostd -printf "%y %m %P\\n" | grep -vE " (content|definitions?|[^/]*\\.db[^/]*)(/|$)"',
  mounts: 'awk \'{print $2, $3}\' /proc/mounts | grep -v "^/run/credentials"',
  processes:
    'for each in /proc/[0-9]*; do readlink $each/exe || true; done | grep -E "kube|containerd|etcd|coredns|network$|runc|busybox|helm|pause"',
  cgroups:
    'find /sys/fs/cgroup -type d -name "kubepods*" -o -type d -name "*cri-containerd*" -o -type d -name "edgehostd-containerd*" -o -type d -name "kubelet*"',
  namespaces: 'ls /run/netns 2> /dev/null || true',
  listening: "ss -Hltun | awk '{print $1, $5}'",
}

/** What systemd, dpkg and the daemon write at any time, in the root of the host. */
const alwaysWritten =
  /^\.\/(var\/log\/(journal|lastlog|wtmp|btmp)|var\/lib\/systemd|var\/cache\/edgehostd|tmp|var\/tmp|run)(\/|$)/

/** Reads all of it. */
export async function readHostState(host: Edgehostd): Promise<HostState> {
  const state: Record<string, readonly string[]> = { root: await changedFiles(host) }
  for (const [name, script] of Object.entries(readings)) {
    const lines = (await host.sh(`{ ${script}; } || true`)).split('\n').map((line) => line.trimEnd())
    state[name] = [...new Set(lines.filter(Boolean))].sort()
  }
  return state
}

/** Every file that differs from the root of the machine, on which the host was booted, and new folders: kind, mode and path. */
async function changedFiles(host: Edgehostd): Promise<string[]> {
  const upper = `/proc/${host.clientNamespace()}/root${host.folder}/cow/upper`
  const found = await output('bash', ['-euc', 'cd "$1"; find . -printf "%y %m %p\\n"', 'sh', upper])
  return found
    .split('\n')
    .filter((line) => {
      const path = line.slice(line.indexOf('./'))
      // A folder is there too when something in it has changed, or has come and gone.
      const isFolderOfRoot = line.startsWith('d ') && existsSync(join('/', path))
      return line !== '' && !isFolderOfRoot && !alwaysWritten.test(path)
    })
    .sort()
}

/** What came and what went, by list; empty where two states are equal. */
export function changesBetween(before: HostState, after: HostState): readonly string[] {
  return Object.keys(before).flatMap((name) => {
    const [old, now] = [before[name]!, after[name]!]
    return [
      ...now.filter((line) => !old.includes(line)).map((line) => `${name} + ${line}`),
      ...old.filter((line) => !now.includes(line)).map((line) => `${name} - ${line}`),
    ]
  })
}

/** Expects that the host becomes as it was. */
export const expectRestored = (host: Edgehostd, before: HostState): Promise<void> =>
  eventually(async () => expect(changesBetween(before, await readHostState(host))).toEqual([]), 20_000)
