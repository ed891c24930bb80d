// `make install` and `make uninstall`: the package's layout below DESTDIR, without the package.
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { documentPaths, hostLayout, programPaths } from './host-layout.ts'
import { layOutPackage } from './layout.ts'

const { listFiles, emptyFolders, configurationPaths } = hostLayout

const [action, destination = '/'] = process.argv.slice(2)
const folder = destination === '' ? '/' : destination

if (action === 'install') {
  layOutPackage(listFiles(process.arch === 'arm64' ? 'arm64' : 'amd64'), emptyFolders, folder)
  console.log(`installed below ${folder}`)
  // Enables and starts the daemon, and prints address and fingerprint, as the package does.
  if (folder === '/' && existsSync('/run/systemd/system')) {
    execFileSync('sh', [join(import.meta.dirname, 'debian/postinst'), 'configure'], { stdio: 'inherit' })
  }
} else if (action === 'uninstall') {
  // The daemon is stopped before its program is removed, so that it can finish what is in flight.
  if (folder === '/' && existsSync('/run/systemd/system')) {
    execFileSync('systemctl', ['disable', '--now', 'edgehostd.socket', 'edgehostd.service'], {
      stdio: 'inherit',
    })
  }
  rmSync(join(folder, 'var/cache/edgehostd'), { recursive: true, force: true })
  // Made by systemd-tmpfiles.
  rmSync(join(folder, 'etc/issue.d/edgehostd.issue'), { force: true })
  removeEmpty(join(folder, 'etc/issue.d'))
  for (const path of [...programPaths, ...documentPaths]) rmSync(join(folder, path), { force: true })
  for (const path of [
    'usr/lib/edgehostd',
    ...['/adr', '/monitoring', ''].map((each) => `usr/share/doc/edgehostd${each}`),
  ])
    removeEmpty(join(folder, path))
  const kept = [...configurationPaths, 'var/lib/edgehostd'].map((path) => join(folder, path))
  console.log(`uninstalled; configuration and state are left: ${kept.join(' ')}`)
} else {
  throw new Error('usage: install.ts install|uninstall [DESTDIR]')
}

function removeEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY'].includes(String((error as NodeJS.ErrnoException).code))) throw error
  }
}
