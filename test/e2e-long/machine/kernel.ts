import { chmod, cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { output } from '../../e2e/host/process.ts'

/** Debian's own kernel, unpacked and not installed. */
export interface Kernel {
  readonly version: string
  /** The image to boot. */
  readonly file: string
  /** Has lib/modules/<version>. */
  readonly folder: string
}

// To find the root file system.
const rootModules = ['virtio_pci', 'virtio_blk', 'ext4', 'crc32c_generic']

/** Modules for the hardware of the machine and for the tests, without their dependencies. */
const modules = [
  ...rootModules,
  // Hardware.
  ...[
    'virtio_net',
    'virtio_console',
    'virtio_scsi',
    'e1000e',
    'nvme',
    'ahci',
    'mptsas',
    'sd_mod',
    'sr_mod',
    'sg',
  ],
  ...['xhci_pci', 'usb_storage', 'uas', 'sdhci_pci', 'mmc_block'],
  // Network.
  ...['bonding', '8021q', 'bridge', 'veth', 'dummy', 'tun'],
  // Volumes and file systems.
  ...['raid1', 'dm_mod', 'dm_crypt', 'xts', 'aesni_intel', 'algif_skcipher', 'loop'],
  ...['vfat', 'nls_cp437', 'nls_ascii', 'squashfs', 'overlay', 'fuse', 'autofs4'],
]

/** Fetches the kernel package of this machine's release by apt and unpacks it into a folder. */
export async function unpackKernel(folder: string): Promise<Kernel> {
  const depends = await output('apt-cache', ['depends', 'linux-image-amd64'])
  const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1]
  if (!name) throw new Error(`apt knows no kernel:\n${depends}`)
  await mkdir(folder, { recursive: true })
  await output(
    'sh',
    ['-euc', 'cd "$1"; apt-get download -qq -o APT::Sandbox::User=root "$2"', 'sh', folder, name],
    { timeoutMs: 300_000 },
  )
  const deb = (await readdir(folder)).find((file) => file.endsWith('.deb'))!
  await output('dpkg-deb', ['--extract', join(folder, deb), folder], { timeoutMs: 300_000 })
  const version = name.replace('linux-image-', '')
  return { version, file: join(folder, 'boot', `vmlinuz-${version}`), folder }
}

/** Puts these modules and their dependencies into a root. */
export async function installModules({ version, folder }: Kernel, root: string): Promise<void> {
  const all = join('lib/modules', version)
  await output('depmod', ['-b', folder, version])
  for (const file of await dependencies(folder, version, modules)) {
    await cp(join(folder, file), join(root, file))
  }
  for (const list of ['modules.builtin', 'modules.builtin.modinfo', 'modules.order']) {
    await cp(join(folder, all, list), join(root, all, list))
  }
  await output('depmod', ['-b', root, version])
}

/**
 * Writes the initramfs, which finds the real root and continues there. The busybox of the root packs it.
 * @param root with modules and busybox
 */
export async function packInitramfs({ version }: Kernel, root: string, folder: string): Promise<string> {
  const files = await dependencies(root, version, rootModules)
  const tree = join(folder, 'initramfs')
  for (const name of ['dev', 'proc', 'sys', 'root', 'bin']) await mkdir(join(tree, name), { recursive: true })
  await cp(join(root, 'bin/busybox'), join(tree, 'bin/busybox'))
  for (const file of files) {
    await mkdir(dirname(join(tree, file)), { recursive: true })
    await cp(join(root, file), join(tree, file))
  }
  const init = `#!/bin/busybox sh
busybox mount -t devtmpfs dev /dev
${files.map((file) => `busybox insmod /${file}`).join('\n')}
until [ -b /dev/vda ]; do busybox usleep 20000; done
busybox mount -t ext4 /dev/vda /root
busybox mount -o move /dev /root/dev
exec busybox switch_root /root /sbin/init
`
  await writeFile(join(tree, 'init'), init)
  await chmod(join(tree, 'init'), 0o755)
  const packed = join(folder, 'initrd')
  await output('sh', [
    '-euc',
    'cd "$1"; find . | ./bin/busybox cpio -o -H newc > "$2" 2> /dev/null',
    'sh',
    tree,
    packed,
  ])
  return packed
}

/** Files of modules in the order they have to be loaded, relative to the root. */
async function dependencies(root: string, version: string, names: readonly string[]): Promise<string[]> {
  const shown = await output('modprobe', ['-d', root, '-S', version, '--show-depends', '--all', ...names])
  const files = [...shown.matchAll(/^insmod (\S+)/gm)].map(([, file]) => file!.slice(root.length + 1))
  return [...new Set(files)]
}
