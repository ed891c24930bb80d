import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { output } from '../../e2e/host/process.ts'
import { cache, debian, releaseName } from '../../e2e/host/roots.ts'
import { installModules, packInitramfs, unpackKernel } from './kernel.ts'
import { shellProgram } from './shell.ts'

/** The files that a machine boots from; never written to. */
export interface Image {
  readonly kernel: string
  readonly initramfs: string
  /** An ext4 file system. */
  readonly root: string
}

/** What an image is made of, beside the kernel and the package. */
export interface Recipe {
  /** Of its files in the cache. */
  readonly name: string
  /** The folder of a Debian with udev, kmod and busybox, which is copied. */
  tree(): Promise<string>
  /** Changes the copy. */
  prepare?(root: string): Promise<void>
}

/** Packages of the machine that has all hardware, beyond a minimal Debian. */
const packages = [
  ...['systemd-sysv', 'systemd-resolved', 'dbus', 'udev', 'kmod', 'iproute2', 'openssl', 'libpam-runtime'],
  ...['lvm2', 'mdadm', 'cryptsetup-bin', 'fdisk', 'dosfstools', 'squashfs-tools', 'chrony', 'busybox-static'],
  // The tools of the inventory, and those it is compared with.
  ...['dmidecode', 'ethtool', 'pciutils', 'smartmontools', 'usbutils'],
]

/** Units that a short-lived machine does not need: each costs time at the start without a hypervisor. */
const masked = [
  ...[
    'apt-daily.timer',
    'apt-daily-upgrade.timer',
    'dpkg-db-backup.timer',
    'e2scrub_all.timer',
    'fstrim.timer',
  ],
  ...['e2scrub_reap.service', 'getty@tty1.service', 'serial-getty@ttyS0.service', 'systemd-pstore.service'],
  ...['ldconfig.service', 'systemd-hwdb-update.service', 'systemd-journal-catalog-update.service'],
  ...['systemd-update-utmp.service', 'systemd-update-utmp-runlevel.service', 'systemd-rfkill.socket'],
  ...['systemd-firstboot.service', 'remote-fs.target', 'logrotate.timer', 'mdmonitor-oneshot.timer'],
  ...[
    'mdcheck_start.timer',
    'mdcheck_continue.timer',
    'systemd-tmpfiles-clean.timer',
    'initrd-udevadm-cleanup-db.service',
  ],
]

const shellUnit = `[Unit]
Description=Shell on a serial port
[Service]
ExecStart=/usr/local/sbin/shell
Restart=always
[Install]
WantedBy=multi-user.target
`

/** The image of the machine that has all hardware. */
export const allHardware: Recipe = {
  name: 'machine',
  tree: async () => debian(`machine-debian-${nameOf(packages)}`, packages),
}

/**
 * An image with a package installed. Everything but the package is made once for a checkout, and again when its recipe has
 * changed: that needs root, the network and two minutes.
 */
export async function makeImage(deb: string, recipe: Recipe): Promise<Image> {
  const sources = createHash('sha256').update(shellProgram)
  if (recipe.prepare) sources.update(recipe.prepare.toString())
  for (const file of ['image.ts', 'kernel.ts']) {
    sources.update(await readFile(join(import.meta.dirname, file)))
  }
  const release = `${recipe.name}-${await releaseName()}`
  const folder = await once(release, sources.digest('hex'), (path) => makeBase(recipe, path))
  const content = createHash('sha256')
    .update(await readFile(deb))
    .digest('hex')
  const root = await once(`${recipe.name}-root.ext4`, `${basename(folder)}-${content}`, (file) =>
    makeRoot(join(folder, 'root'), deb, file),
  )
  return { kernel: join(folder, 'vmlinuz'), initramfs: join(folder, 'initrd'), root }
}

/** The result of `make` at a path that is named after its sources; results of older sources are removed. */
async function once(name: string, key: string, make: (path: string) => Promise<void>): Promise<string> {
  const path = join(cache, `${name}-${nameOf([key])}`)
  if (existsSync(path)) return path
  const making = `${path}.${process.pid}`
  try {
    await make(making)
    for (const former of await readdir(cache)) {
      if (former.startsWith(`${name}-`) && former !== basename(making)) {
        await rm(join(cache, former), { recursive: true, force: true })
      }
    }
    await rename(making, path)
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return path
}

const nameOf = (list: readonly string[]) => createHash('sha256').update(list.join()).digest('hex').slice(0, 8)

/** Kernel, initramfs and the root as a folder. */
async function makeBase(recipe: Recipe, folder: string): Promise<void> {
  const root = join(folder, 'root')
  const tree = await recipe.tree()
  await mkdir(folder, { recursive: true })
  await output('cp', ['-a', tree, root])
  await recipe.prepare?.(root)
  const kernel = await unpackKernel(join(folder, 'kernel'))
  await installModules(kernel, root)
  await packInitramfs(kernel, root, folder)
  await rename(kernel.file, join(folder, 'vmlinuz'))
  await furnish(root)
  for (const name of ['kernel', 'initramfs']) await rm(join(folder, name), { recursive: true, force: true })
}

/**
 * The root as a file system of 1.5 GiB, sparse, with the package installed by dpkg as in every image that is made
 * for hosts: inside the machine that takes emulation a minute. Nothing has to be mounted here.
 */
async function makeRoot(base: string, deb: string, file: string): Promise<void> {
  const root = `${file}.root`
  try {
    await output('cp', ['-a', base, root])
    await copyFile(deb, join(root, 'root/edgehostd.deb'))
    await output('chroot', [root, 'dpkg', '--install', '/root/edgehostd.deb'], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    })
    await rm(join(root, 'root/edgehostd.deb'))
    // Newer than /usr: systemd then skips its work after an upgrade (systemd-update-done.service(8)).
    for (const folder of ['etc', 'var']) await writeFile(join(root, folder, '.updated'), '')
    const flags = ['-q', '-F', '-E', 'lazy_itable_init=1,lazy_journal_init=1', '-L', 'root', '-d', root]
    await output('mkfs.ext4', [...flags, file, '1536M'], { timeoutMs: 300_000 })
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

async function furnish(root: string): Promise<void> {
  const units = join(root, 'etc/systemd/system')
  for (const unit of masked) {
    await rm(join(units, unit), { force: true })
    await symlink('/dev/null', join(units, unit))
  }
  await writeFile(join(units, 'shell.service'), shellUnit)
  await mkdir(join(units, 'multi-user.target.wants'), { recursive: true })
  await symlink('/etc/systemd/system/shell.service', join(units, 'multi-user.target.wants/shell.service'))
  await writeFile(join(root, 'usr/local/sbin/shell'), shellProgram)
  await chmod(join(root, 'usr/local/sbin/shell'), 0o755)
  await writeFile(join(root, 'etc/machine-id'), `${randomUUID().replaceAll('-', '')}\n`)
  await writeFile(join(root, 'etc/hostname'), 'machine\n')
  await writeFile(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 machine\n')
  await writeFile(join(root, 'etc/fstab'), '')
  await rm(join(root, 'var/cache/apt/archives'), { recursive: true, force: true })
}
