// The files of an installed platform.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { changelog, documentNames, readDocument, type InstalledFile, type PackageLayout } from './layout.ts'
import { fetchRuntime, type Architecture } from './parts.ts'

const root = resolve(import.meta.dirname, '..')

const configurationPaths = ['etc/edgeplatform/config.yaml'] as const

function listPlatformFiles(architecture: Architecture): InstalledFile[] {
  const runtime = fetchRuntime(architecture)
  const read = (path: string) => readFileSync(`${root}/${path}`)
  const texts = JSON.parse(
    execFileSync(process.execPath, [`${import.meta.dirname}/platform-texts.ts`], { encoding: 'utf8' }),
  ) as { manual: string; completion: string }
  const contents: Readonly<Record<string, string | Buffer>> = {
    'usr/lib/edgeplatform/node': runtime.program,
    'usr/lib/edgeplatform/edgeplatformd.cjs': read('dist/edgeplatformd.cjs'),
    'usr/lib/edgeplatform/edgeplatformctl.cjs': read('dist/edgeplatformctl.cjs'),
    'usr/lib/edgeplatform/backup.cjs': read('dist/backup.cjs'),
    'usr/lib/edgeplatform/examine.cjs': read('dist/examine.cjs'),
    'usr/lib/edgeplatform/execa.cjs': read('dist/execa.cjs'),
    'usr/lib/edgeplatform/re2js.cjs': read('dist/re2js.cjs'),
    'usr/lib/edgeplatform/x509.cjs': read('dist/x509.cjs'),
    'usr/lib/edgeplatform/yaml.cjs': read('dist/yaml.cjs'),
    'usr/sbin/edgeplatformd': read('build/debian-platform/edgeplatformd'),
    'usr/bin/edgeplatformctl': read('build/debian-platform/edgeplatformctl'),
    'usr/share/man/man1/edgeplatformctl.1.gz': gzipSync(texts.manual, { level: 9 }),
    'usr/share/bash-completion/completions/edgeplatformctl': texts.completion,
    'lib/systemd/system/edgeplatformd.service': read('systemd/edgeplatformd.service'),
    'lib/systemd/system/edgeplatformd.socket': read('systemd/edgeplatformd.socket'),
    'lib/systemd/system/edgeplatformd-refused.target': read('systemd/edgeplatformd-refused.target'),
    'usr/lib/sysusers.d/edgeplatform.conf': read('systemd/edgeplatform.sysusers'),
    'usr/share/doc/edgeplatform/copyright': read('build/debian-platform/copyright'),
    'usr/share/doc/edgeplatform/third-party.gz': gzipSync(
      `${read('dist/third-party.txt').toString()}\n==== Node.js\n\n${runtime.license}`,
      { level: 9 },
    ),
    'usr/share/doc/edgeplatform/changelog.gz': gzipSync(changelog('edgeplatform'), { level: 9 }),
    ...Object.fromEntries(
      documentNames.map((name) => [`usr/share/doc/edgeplatform/${name}`, readDocument(name)]),
    ),
  }
  const executables = /^usr\/(lib\/edgeplatform\/node|s?bin\/.*)$/
  return [
    ...Object.entries(contents).map(([path, content]): InstalledFile => {
      return { path, mode: executables.test(path) ? 0o755 : 0o644, content }
    }),
    ...readdirSync(`${root}/dist/platform-console`).map((name): InstalledFile => {
      const content = read(`dist/platform-console/${name}`)
      return { path: `usr/lib/edgeplatform/platform-console/${name}`, mode: 0o644, content }
    }),
    {
      path: configurationPaths[0],
      mode: 0o644,
      content: read('systemd/platform-config.yaml'),
      isConfiguration: true,
    },
  ]
}

/** The package of edgeplatformd. */
export const platformLayout: PackageLayout = {
  name: 'edgeplatform',
  control: 'debian-platform',
  listFiles: listPlatformFiles,
  configurationPaths,
  emptyFolders: ['etc/edgeplatform/config.d'],
}
