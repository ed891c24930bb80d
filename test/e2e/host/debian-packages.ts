import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from './host.ts'
import { output } from './process.ts'
import { cache, releaseName } from './roots.ts'

/**
 * Installs a package of Debian on a host that stands on this machine's own root, as apt would: with what is missing there for it. On another host
 * only the package itself is sure to come. Its services are not started.
 */
export async function installDebian(host: Host, name: string): Promise<void> {
  const folder = await fetchDebian(name)
  const inside = `/root/packages-${name}`
  for (const file of await readdir(folder))
    await host.write(join(inside, file), await readFile(join(folder, file)))
  await host.write('/usr/sbin/policy-rc.d', '#!/bin/sh\nexit 101\n', 0o755)
  await host.sh(`DEBIAN_FRONTEND=noninteractive dpkg --install ${inside}/*.deb`)
}

/** Downloads them once per checkout, which may take minutes; nothing is installed on the test machine. @returns their folder */
export async function fetchDebian(name: string): Promise<string> {
  const folder = join(cache, `debian-${name}-${await releaseName()}`)
  if (existsSync(folder)) return folder
  const making = `${folder}.${process.pid}`
  await mkdir(join(making, 'partial'), { recursive: true })
  try {
    const script = `
      get() {
        apt-get install -qq --yes --reinstall --download-only --no-install-recommends \\
          -o APT::Sandbox::User=root -o DPkg::Lock::Timeout=300 -o Dir::Cache::archives="$1" "$2"
      }
      get "$@" || { apt-get update -qq; get "$@"; }
      rm -rf "$1/partial" "$1/lock"
    `
    await output('sh', ['-euc', script, 'sh', making, name], { timeoutMs: 300_000 })
    await rename(making, folder)
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return folder
}
