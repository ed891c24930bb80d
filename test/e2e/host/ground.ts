import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** What a host stands on: cgroups, network and the environment of systemd-nspawn. */
export interface Ground {
  /** Environment of systemd-nspawn. */
  readonly environment: Readonly<Record<string, string>>
  /** Further arguments of unshare, for the process that holds the host. */
  readonly namespaces: readonly string[]
  /** The cgroups of the host on the test machine. */
  cgroups(name: string): readonly string[]
  /** Whether the network namespace of its holder has clients, connected by a bridge. */
  readonly hasClients: boolean
  /** A bash script, run once before the first boot; it may use $folder, $root and $cgroups. */
  readonly prepare: string
  /** Arguments of systemd-nspawn. */
  nspawn(folder: string): readonly string[]
}

const hierarchies = '/sys/fs/cgroup'
const isUnified = existsSync(join(hierarchies, 'cgroup.controllers'))

/** All cgroups that a host of this name may have. */
export const cgroupsOf = (name: string): readonly string[] =>
  isUnified
    ? [join(hierarchies, name)]
    : readdirSync(hierarchies).map((each) => join(hierarchies, each, name))

/** For most hosts: a network of its own with nothing in it, and the unified hierarchy. */
export const plainGround: Ground = {
  environment: { SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' },
  namespaces: [],
  hasClients: false,
  // In the unified hierarchy, and in systemd's own where the machine is a hybrid.
  cgroups: (name) =>
    cgroupsOf(name).filter((each) => isUnified || /^\/sys\/fs\/cgroup\/(unified|systemd)\//.test(each)),
  prepare: '',
  nspawn: () => ['--private-network'],
}

/** Addresses of a host that can hold a cluster, and of the clients beside it. */
export const clusterWire = {
  host: { ipv4: '10.77.0.1', ipv6: 'fd77::1' },
  clients: { ipv4: '10.77.0.2', ipv6: 'fd77::2' },
} as const

/** Folders of the host that are real ones: containers and etcd cannot be on the overlay that the root is. */
const realFolders = ['edgehostd', 'kubelet', 'etcd']

// What the machine has done for a host before its units start, at each boot: its cgroup controllers are writable, and its
// network card has addresses and a route, which a node of a cluster needs.
const unit = `[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash -euc 'for each in /sys/fs/cgroup /sys/fs/cgroup/*/; do mount -o remount,bind,rw $each || true; done'
ExecStart=/bin/bash -euc 'ip link set lo up; \\
  ip address add ${clusterWire.host.ipv4}/16 dev host0; ip address add ${clusterWire.host.ipv6}/48 dev host0 nodad; \\
  ip link set host0 up; ip route add default via ${clusterWire.clients.ipv4}'
`

/**
 * For a host that can hold a Kubernetes cluster, whose parts need: all capabilities and system calls, every cgroup controller
 * with a cgroup of its own in each hierarchy (of two hosts in one, each would kill the pods of the other), a writable /proc/sys,
 * the log of the kernel, a route and a name server. Its network card is there from the first moment of each boot. The
 * clients are in the network namespace of the process that holds the host.
 */
export const clusterGround: Ground = {
  environment: {
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: isUnified ? '1' : '0',
    SYSTEMD_NSPAWN_API_VFS_WRITABLE: '1',
    SYSTEMD_SECCOMP: '0',
  },
  namespaces: ['--net'],
  hasClients: true,
  cgroups: cgroupsOf,
  prepare: `
for cgroup in $cgroups; do
  # Without these no process can join a cgroup of this controller.
  if [ -e "$cgroup/cpuset.cpus" ]; then
    for file in cpuset.cpus cpuset.mems; do cat "$cgroup/../$file" > "$cgroup/$file"; done
    echo 1 > "$cgroup/cgroup.clone_children"
  fi
done
ip link set lo up; ip link add edge0 type bridge; ip link set edge0 up
ip address add ${clusterWire.clients.ipv4}/16 dev edge0; ip address add ${clusterWire.clients.ipv6}/48 dev edge0 nodad
# CoreDNS does not start without a name server; it need not answer.
echo "nameserver ${clusterWire.clients.ipv4}" > "$root/etc/resolv.conf"
# What each host with a kernel of its own has; and no network of containers that the machine happens to have.
mkdir -p "$root/lib/modules"; rm -rf "$root"/etc/cni/net.d/*
for each in ${realFolders.join(' ')}; do mkdir -p "$folder/$each" "$root/var/lib/$each"; done
mkdir -p "$root/etc/systemd/system/sysinit.target.wants"
cat > "$root/etc/systemd/system/test-ground.service" <<'UNIT'
${unit}UNIT
ln -s ../test-ground.service "$root/etc/systemd/system/sysinit.target.wants/"
`,
  nspawn: (folder) => [
    ...['--network-bridge=edge0', '--capability=all', '--bind=/dev/kmsg'],
    ...realFolders.map((each) => `--bind=${join(folder, each)}:/var/lib/${each}`),
  ],
}
