import { existsSync } from 'node:fs'
import { mkdir, rename, rm, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { output, run, systemPath } from './process.ts'

/** The read-only lower layers that hosts are booted on. */
export type Lower = 'machine' | 'minbase' | 'services' | 'network' | 'network-machine' | 'openstack'

/** The folder of everything that is made once per checkout. */
export const cache = join(import.meta.dirname, '../../../.cache')

/**
 * The folder of a lower layer: this machine's own root, a minimal Debian with systemd and nothing else, one with
 * systemd's resolver and time service too, one with every program that may own the network, none of them enabled, that one with what a machine
 * with a kernel of its own needs, or one with OpenStack, which is not set up.
 */
export async function lowerFolder(lower: Lower): Promise<string> {
  if (lower === 'machine') return '/'
  if (lower === 'openstack') return installed(lower, await lowerFolder('minbase'), openStack)
  if (lower === 'network') return installed(lower, await lowerFolder('minbase'), networkPrograms)
  if (lower === 'network-machine') return installed(lower, await lowerFolder('network'), machinePrograms)
  return debian(lower, packages[lower])
}

const packages = {
  minbase: ['systemd-sysv'],
  services: ['systemd-sysv', 'dbus', 'iproute2', 'systemd-resolved', 'systemd-timesyncd'],
}

// dnsmasq is for the neighbours of a host: it runs there from the same tree.
const networkPrograms = [
  ...['dbus', 'iproute2', 'iputils-arping', 'iputils-ping', 'systemd-resolved', 'netplan.io'],
  ...['network-manager', 'ifupdown', 'isc-dhcp-client', 'bridge-utils', 'ifenslave', 'vlan', 'dnsmasq-base'],
]

// busybox packs the initramfs, and is its shell.
const machinePrograms = ['udev', 'kmod', 'busybox-static', 'libpam-runtime']

const openStack = [
  ...['dbus', 'curl', 'ca-certificates', 'openssl', 'nginx-light', 'rabbitmq-server', 'mariadb-server'],
  ...['python3-pymysql', 'keystone', 'nova-api', 'nova-conductor', 'nova-scheduler', 'nova-compute'],
  ...['placement-api', 'glance-api', 'neutron-server'],
]

/** The name of this machine's own release, for example bookworm. */
export async function releaseName(): Promise<string> {
  const release = /^VERSION_CODENAME=(.+)$/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1]
  if (!release) throw new Error('/etc/os-release names no VERSION_CODENAME')
  return release
}

/** A debootstrap minbase tree of this machine's own release with these packages, from the mirror its apt uses. */
export async function debian(name: string, packages: readonly string[]): Promise<string> {
  const release = await releaseName()
  const folder = join(cache, `${name}-${release}`)
  if (existsSync(folder)) return folder
  const making = `${folder}.${process.pid}`
  await mkdir(cache, { recursive: true })
  try {
    const included = packages.length === 0 ? [] : [`--include=${packages.join(',')}`]
    const proxy = Object.entries(process.env).filter(([name]) => /^https?_proxy$/i.test(name))
    await output('debootstrap', ['--variant=minbase', ...included, release, making, await mirror(release)], {
      timeoutMs: 1_200_000,
      env: { PATH: systemPath, ...(Object.fromEntries(proxy) as Record<string, string>) },
    })
    // The package has to contain what it needs: no lists, no mirror, no download.
    await rm(join(making, 'var/lib/apt/lists'), { recursive: true, force: true })
    await rename(making, folder)
  } finally {
    // A debootstrap that was ended leaves these mounted.
    for (const mount of ['proc', 'sys']) await run('umount', ['--recursive', '--quiet', join(making, mount)])
    await rm(making, { recursive: true, force: true })
  }
  return folder
}

async function mirror(release: string): Promise<string> {
  const targets = await output('apt-get', [
    'indextargets',
    '--format',
    '$(RELEASE) $(COMPONENT) $(REPO_URI)',
    'Created-By: Packages',
  ])
  const line = targets.split('\n').find((target) => target.startsWith(`${release} main `))
  if (!line) throw new Error(`apt knows no source for ${release} main; run apt-get update`)
  return line.split(' ')[2]!
}

/** A copy of such a tree with further packages, installed by apt, since their scripts need more than debootstrap has. Nothing is started. */
async function installed(name: string, base: string, packages: readonly string[]): Promise<string> {
  const folder = join(cache, `${name}-${await releaseName()}`)
  if (existsSync(folder)) return folder
  const making = `${folder}.${process.pid}`
  const script = `
    cp -a "$1" "$2"; root=$2; shift 2
    printf '#!/bin/sh\\nexit 101\\n' > "$root/usr/sbin/policy-rc.d"; chmod 755 "$root/usr/sbin/policy-rc.d"
    # That of the base may be a link into /run, which resolved makes when it is installed.
    link=$(readlink "$root/etc/resolv.conf" || true); rm -f "$root/etc/resolv.conf"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries|Force)' > "$root/etc/apt/apt.conf.d/00machine" || true
    mount -t proc proc "$root/proc"
    chroot "$root" apt-get update -qq
    chroot "$root" apt-get install -qq --yes --no-install-recommends "$@" > /dev/null
    [ -z "$link" ] || ln -sf "$link" "$root/etc/resolv.conf"
    rm -rf "$root"/var/lib/apt/lists "$root"/var/cache/apt/archives/*.deb
    rm "$root/usr/sbin/policy-rc.d" "$root/etc/apt/apt.conf.d/00machine"
  `
  try {
    // What is mounted goes with the namespace.
    await output('unshare', ['--mount', 'bash', '-euc', script, 'installed', base, making, ...packages], {
      timeoutMs: 1_200_000,
      env: { PATH: systemPath, DEBIAN_FRONTEND: 'noninteractive' },
    })
    await rename(making, folder)
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return folder
}
