import { existsSync } from 'node:fs'
import { mkdir, rename, rm, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { output, run, systemPath } from './process.ts'

/** The read-only lower layers that hosts are booted on. */
export type Lower = 'machine' | 'minbase' | 'services'

/** The folder of everything that is made once per checkout. */
export const cache = join(import.meta.dirname, '../../../.cache')

/**
 * The folder of a lower layer: this machine's own root, a minimal Debian with systemd and nothing else, or one with
 * systemd's resolver and time service too.
 */
export async function lowerFolder(lower: Lower): Promise<string> {
  return lower === 'machine' ? '/' : debian(lower, packages[lower])
}

const packages = {
  minbase: ['systemd-sysv'],
  services: ['systemd-sysv', 'dbus', 'iproute2', 'systemd-resolved', 'systemd-timesyncd'],
}

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
