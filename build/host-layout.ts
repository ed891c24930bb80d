// The files of an installed host: one list for the package, `make install` and `make uninstall`.
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { bashCompletion } from '../src/ctl/help.ts'
import { commandTable } from '../src/edgehostctl/nouns.ts'
import { clusterPackages } from '../src/cluster/host/judge-host.ts'
import { changelog, documentNames, readDocument, type InstalledFile, type PackageLayout } from './layout.ts'
import { manualPage, ofHost } from './manual.ts'
import { fetchPamtester, fetchRuntime, type Architecture } from './parts.ts'

const root = resolve(import.meta.dirname, '..')

/** Paths of the files that `listHostFiles` returns, except the configuration. */
export const programPaths = [
  'usr/lib/edgehostd/node',
  'usr/lib/edgehostd/pamtester',
  'usr/lib/edgehostd/main.cjs',
  'usr/lib/edgehostd/daemon.cjs',
  'usr/lib/edgehostd/edgehostctl.cjs',
  'usr/lib/edgehostd/support.cjs',
  'usr/lib/edgehostd/platform.cjs',
  'usr/lib/edgehostd/definition.cjs',
  'usr/lib/edgehostd/examine.cjs',
  'usr/lib/edgehostd/content.cjs',
  'usr/lib/edgehostd/keeper.cjs',
  'usr/lib/edgehostd/network-trial',
  'usr/lib/edgehostd/inventory.cjs',
  'usr/lib/edgehostd/prepare.cjs',
  'usr/lib/edgehostd/step.cjs',
  'usr/lib/edgehostd/verb.cjs',
  'usr/lib/edgehostd/execa.cjs',
  'usr/lib/edgehostd/re2js.cjs',
  'usr/lib/edgehostd/x509.cjs',
  'usr/lib/edgehostd/yaml.cjs',
  // For a reset: nobody edits this one.
  'usr/lib/edgehostd/config.yaml',
  'usr/sbin/edgehostd',
  'usr/bin/edgehostctl',
  'lib/systemd/system/edgehostd.service',
  'lib/systemd/system/edgehostd.socket',
  'lib/systemd/system/edgehostd-network.service',
  'lib/systemd/system/containerd.service.d/50-edgehostd-proxy.conf',
  'lib/systemd/system/edgehostd-containerd.service.d/50-edgehostd-proxy.conf',
  'lib/systemd/system/kubelet.service.d/50-edgehostd-proxy.conf',
  'usr/lib/tmpfiles.d/edgehostd.conf',
  'usr/share/man/man8/edgehostd.8.gz',
  'usr/share/man/man1/edgehostctl.1.gz',
  'usr/share/bash-completion/completions/edgehostctl',
  'usr/share/doc/edgehostd/copyright',
  'usr/share/doc/edgehostd/third-party.gz',
  'usr/share/doc/edgehostd/changelog.gz',
] as const

/** Paths of the documents that `listHostFiles` returns. */
export const documentPaths: readonly string[] = documentNames.map(documentPathOf)

function documentPathOf(name: string): string {
  return `usr/share/doc/edgehostd/${name}`
}

/** Paths of the files that belong to the administrator once they exist. */
export const configurationPaths = ['etc/edgehostd/config.yaml', 'etc/pam.d/edgehostd'] as const

/** Every file of an installed host; needs a finished `make build`. */
function listHostFiles(architecture: Architecture): InstalledFile[] {
  const runtime = fetchRuntime(architecture)
  const pamtester = fetchPamtester(architecture)
  const read = (path: string) => readFileSync(`${root}/${path}`)
  const contents: Record<(typeof programPaths)[number], string | Buffer> = {
    'usr/lib/edgehostd/node': runtime.program,
    'usr/lib/edgehostd/pamtester': pamtester.program,
    'usr/lib/edgehostd/main.cjs': read('dist/main.cjs'),
    'usr/lib/edgehostd/daemon.cjs': read('dist/daemon.cjs'),
    'usr/lib/edgehostd/edgehostctl.cjs': read('dist/edgehostctl.cjs'),
    'usr/lib/edgehostd/support.cjs': read('dist/support.cjs'),
    'usr/lib/edgehostd/platform.cjs': read('dist/platform.cjs'),
    'usr/lib/edgehostd/definition.cjs': read('dist/definition.cjs'),
    'usr/lib/edgehostd/examine.cjs': read('dist/examine.cjs'),
    'usr/lib/edgehostd/content.cjs': read('dist/content.cjs'),
    'usr/lib/edgehostd/keeper.cjs': read('dist/keeper.cjs'),
    'usr/lib/edgehostd/network-trial': read('systemd/network-trial'),
    'usr/lib/edgehostd/inventory.cjs': read('dist/inventory.cjs'),
    'usr/lib/edgehostd/prepare.cjs': read('dist/prepare.cjs'),
    'usr/lib/edgehostd/step.cjs': read('dist/step.cjs'),
    'usr/lib/edgehostd/verb.cjs': read('dist/verb.cjs'),
    'usr/lib/edgehostd/execa.cjs': read('dist/execa.cjs'),
    'usr/lib/edgehostd/re2js.cjs': read('dist/re2js.cjs'),
    'usr/lib/edgehostd/x509.cjs': read('dist/x509.cjs'),
    'usr/lib/edgehostd/yaml.cjs': read('dist/yaml.cjs'),
    'usr/lib/edgehostd/config.yaml': read('systemd/config.yaml'),
    'usr/bin/edgehostctl': read('build/debian/edgehostctl'),
    'usr/sbin/edgehostd': read('build/debian/edgehostd'),
    'lib/systemd/system/edgehostd.service': read('systemd/edgehostd.service'),
    'lib/systemd/system/edgehostd.socket': read('systemd/edgehostd.socket'),
    'lib/systemd/system/edgehostd-network.service': read('systemd/edgehostd-network.service'),
    'lib/systemd/system/containerd.service.d/50-edgehostd-proxy.conf': read('systemd/proxy.conf'),
    'lib/systemd/system/edgehostd-containerd.service.d/50-edgehostd-proxy.conf': read('systemd/proxy.conf'),
    'lib/systemd/system/kubelet.service.d/50-edgehostd-proxy.conf': read('systemd/proxy.conf'),
    'usr/lib/tmpfiles.d/edgehostd.conf': read('systemd/edgehostd.tmpfiles'),
    'usr/share/man/man8/edgehostd.8.gz': gzipSync(read('systemd/edgehostd.8'), { level: 9 }),
    'usr/share/man/man1/edgehostctl.1.gz': gzipSync(manualPage({ table: commandTable, ...ofHost }), {
      level: 9,
    }),
    'usr/share/bash-completion/completions/edgehostctl': bashCompletion(commandTable),
    'usr/share/doc/edgehostd/copyright': `${read('build/debian/copyright').toString()}\npamtester:\n\n${pamtester.license}`,
    'usr/share/doc/edgehostd/third-party.gz': gzipSync(
      `${read('dist/third-party.txt').toString()}\n==== Node.js\n\n${runtime.license}`,
      { level: 9 },
    ),
    'usr/share/doc/edgehostd/changelog.gz': gzipSync(changelog('edgehostd'), { level: 9 }),
  }
  const executables = /^usr\/(lib\/edgehostd\/(node|pamtester|network-trial)|s?bin\/.*)$/
  return [
    ...programPaths.map((path): InstalledFile => {
      return { path, mode: executables.test(path) ? 0o755 : 0o644, content: contents[path] }
    }),
    ...readdirSync(`${root}/dist/console`).map((name): InstalledFile => {
      return { path: `usr/lib/edgehostd/console/${name}`, mode: 0o644, content: read(`dist/console/${name}`) }
    }),
    ...documentNames.map((name): InstalledFile => {
      return { path: documentPathOf(name), mode: 0o644, content: readDocument(name) }
    }),
    { path: configurationPaths[0], mode: 0o644, content: read('systemd/config.yaml'), isConfiguration: true },
    {
      path: configurationPaths[1],
      mode: 0o644,
      content: read('systemd/edgehostd.pam'),
      isConfiguration: true,
    },
  ]
}

/** The package of edgehostd. */
export const hostLayout: PackageLayout = {
  name: 'edgehostd',
  control: 'debian',
  listFiles: listHostFiles,
  configurationPaths,
  emptyFolders: ['etc/edgehostd/config.d'],
}

/** The package that depends on what a cluster needs of Debian, and has no program of its own. */
export const kubernetesLayout: PackageLayout = {
  name: 'edgehostd-kubernetes',
  control: 'debian-kubernetes',
  isForAll: true,
  words: { CLUSTER_PACKAGES: clusterPackages.join(', ') },
  listFiles: () => [
    {
      path: 'usr/share/doc/edgehostd-kubernetes/copyright',
      mode: 0o644,
      content: readFileSync(`${root}/build/debian-kubernetes/copyright`),
    },
    {
      path: 'usr/share/doc/edgehostd-kubernetes/changelog.gz',
      mode: 0o644,
      content: gzipSync(changelog('edgehostd-kubernetes'), { level: 9 }),
    },
  ],
  configurationPaths: [],
  emptyFolders: [],
}
