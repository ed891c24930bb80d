// Makes dist/edgehostd_<version>_<architecture>.deb and dist/edgeplatform_<version>_<architecture>.deb for each architecture named, and
// dist/edgehostd-kubernetes_<version>_all.deb: the same bytes on every machine.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { readBuildDate } from './build-date.ts'
import { hostLayout, kubernetesLayout } from './host-layout.ts'
import { layOut, layOutPackage, version, type InstalledFile, type PackageLayout } from './layout.ts'
import { platformLayout } from './platform-layout.ts'
import type { Architecture } from './parts.ts'

const root = resolve(import.meta.dirname, '..')
const scripts = ['postinst', 'prerm', 'postrm'] as const

const architectures = process.argv.slice(2)
for (const architecture of architectures) {
  if (architecture !== 'amd64' && architecture !== 'arm64')
    throw new Error(`there is no package for ${architecture}; name amd64 or arm64`)
  for (const layout of [hostLayout, platformLayout]) makePackage(layout, architecture)
}

const [anyArchitecture] = architectures
if (anyArchitecture) makePackage(kubernetesLayout, anyArchitecture as Architecture)

function makePackage(layout: PackageLayout, architecture: Architecture): void {
  const { name, listFiles, emptyFolders, isForAll = false } = layout
  const ofPackage = isForAll ? 'all' : architecture
  const folder = `${root}/.cache/package-${name}-${ofPackage}`
  const target = `${root}/dist/${name}_${version}_${ofPackage}.deb`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755)
  const files = listFiles(architecture)
  layOutPackage(files, emptyFolders, folder)
  layOut(controlFiles(layout, ofPackage, files), folder)
  setTimes(folder)
  // zstd 6 in one thread: 3 s and 39 MiB; xz would save 5 MiB and take half a minute.
  const options = ['-Zzstd', '-z6', '--threads-max=1', '--root-owner-group']
  execFileSync('dpkg-deb', [...options, '--build', folder, target], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(readBuildDate()) },
  })
  rmSync(folder, { recursive: true })
  const hash = createHash('sha256').update(readFileSync(target)).digest('hex')
  console.log(`${hash}  ${target.slice(root.length + 1)}  ${Math.ceil(statSync(target).size / 2 ** 10)} KiB`)
}

/** Sets all times to the build date. dpkg-deb lowers only later times, and a machine whose clock is wrong makes earlier ones. */
function setTimes(folder: string): void {
  const date = readBuildDate()
  for (const name of ['', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })]) {
    utimesSync(join(folder, name), date, date)
  }
}

function controlFiles(
  { control: from, configurationPaths, words = {} }: PackageLayout,
  architecture: Architecture | 'all',
  files: readonly InstalledFile[],
): InstalledFile[] {
  const kibibytes = files.reduce((sum, { content }) => sum + Math.ceil(content.length / 1024), 0)
  const values = { VERSION: version, ARCHITECTURE: architecture, SIZE: String(kibibytes), ...words }
  const control = Object.entries(values).reduce(
    (text, [word, value]) => text.replaceAll(`@${word}@`, value),
    readFileSync(`${root}/build/${from}/control`, 'utf8'),
  )
  const sums = files
    .filter(({ isConfiguration }) => !isConfiguration)
    .map(({ path, content }) => `${createHash('md5').update(content).digest('hex')}  ${path}\n`)
  return [
    { path: 'DEBIAN/control', mode: 0o644, content: control },
    ...(configurationPaths.length === 0
      ? []
      : [
          {
            path: 'DEBIAN/conffiles',
            mode: 0o644,
            content: configurationPaths.map((path) => `/${path}\n`).join(''),
          } as const,
        ]),
    { path: 'DEBIAN/md5sums', mode: 0o644, content: sums.join('') },
    ...scripts
      .filter((name) => existsSync(`${root}/build/${from}/${name}`))
      .map((name): InstalledFile => {
        return { path: `DEBIAN/${name}`, mode: 0o755, content: readFileSync(`${root}/build/${from}/${name}`) }
      }),
  ]
}
