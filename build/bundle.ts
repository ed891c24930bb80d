// Bundles the programs into dist/:
// - daemon.cjs: the daemon and the packages that its start needs;
// - main.cjs: loads daemon.cjs with V8's compile cache (docs/adr/0005 says why);
// - edgehostctl.cjs: the command line;
// - edgeplatformd.cjs, edgeplatformctl.cjs: the platform and its command line, with a package of their own;
// - backup.cjs: the program of `edgeplatformctl backup` and `restore`;
// - support.cjs and definition.cjs: the programs of `edgehostctl support` and `edgehostctl definition`;
// - platform.cjs: the program of `edgehostctl platform connect` and `platform disconnect`;
// - examine.cjs: checks definitions for the daemon;
// - content.cjs: unpacks, checks and publishes bundles for the daemon;
// - prepare.cjs: prepares a cluster from a definition for the daemon;
// - keeper.cjs: runs a command that outlives the daemon;
// - inventory.cjs: reads the inventory of the hardware;
// - verb.cjs: does one verb as root, outside the sandbox of the daemon;
// - step.cjs: does one action of a step of the cluster, outside the sandbox of the daemon;
// - execa.cjs, re2js.cjs, x509.cjs and yaml.cjs: packages that these programs load only when they need them;
// - console/ and platform-console/: the pages for browsers of the host and of the platform.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { build, type BuildOptions, type Metafile } from 'esbuild'
import { readBuildDate } from './build-date.ts'
import { bundleConsole } from './console.ts'
import { neededNode, oldestSyntax, requireNode } from './needed-node.ts'

const root = `${import.meta.dirname}/..`
const output = `${root}/dist`
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string }

// Package -> its file. These packages are large, and few commands need them, or the daemon only after its start. They are not
// in the bundles, since V8 reads the whole text of a program more than once before its first line runs.
const separatePackages: Readonly<Record<string, string>> = {
  execa: './execa.cjs',
  re2js: './re2js.cjs',
  '@peculiar/x509': './x509.cjs',
  yaml: './yaml.cjs',
}

const baseOptions = {
  absWorkingDir: root,
  bundle: true,
  format: 'cjs',
  platform: 'node',
  target: `node${neededNode}`,
  // Names are kept, so that a stack trace in a journal is readable without the sources.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  write: false,
} as const satisfies BuildOptions

const programOptions = {
  ...baseOptions,
  alias: separatePackages,
  external: Object.values(separatePackages),
  // A dynamic import becomes a require, which does not load Node's loader of ES modules.
  supported: { 'dynamic-import': false },
  define: { __VERSION__: JSON.stringify(version), 'import.meta.dirname': '__dirname' },
} as const satisfies BuildOptions

/** The rooms that both programs share take the names of the platform. */
const ofPlatform = {
  ...programOptions,
  define: { ...programOptions.define, __PROGRAM__: JSON.stringify('edgeplatformd') },
} as const satisfies BuildOptions

const fileUrlBanner = { js: "const __bundleUrl=require('node:url').pathToFileURL(__filename).href;" }

const inputs = new Set<string>()

// CommonJS, since V8 compiles only a classic script from a cache that contains functions compiled after the load.
const daemon = await bundle({
  ...programOptions,
  entryPoints: ['src/edgehostd/main.ts'],
  define: {
    ...programOptions.define,
    __BUILD_DATE__: String(readBuildDate() * 1000),
    'import.meta.url': '__bundleUrl',
    'import.meta.filename': '__filename',
  },
  banner: fileUrlBanner,
  inspect: requireLoadedLater,
})
// The loader reads the bundle as Latin-1, which keeps V8 at one byte a character.
if (!/^\p{ASCII}*$/u.test(daemon)) throw new Error('the bundle contains characters outside ASCII')

// CommonJS too: Node's loader of ES modules takes 20 ms before our first line runs.
const loader = await bundle({
  ...startedByUsers('edgehostd'),
  entryPoints: ['build/loader.ts'],
  define: {
    ...programOptions.define,
    // V8 compares a cache with its source by length only, so the cache is named after the content.
    __BUNDLE_HASH__: JSON.stringify(createHash('sha256').update(daemon).digest('hex').slice(0, 16)),
  },
})

const files: Record<string, string> = {
  'daemon.cjs': daemon,
  'main.cjs': loader,
  'edgehostctl.cjs': await bundle({
    ...startedByUsers('edgehostctl'),
    entryPoints: ['src/edgehostctl/main.ts'],
  }),
  'edgeplatformd.cjs': await bundle({
    ...ofPlatform,
    entryPoints: ['src/edgeplatformd/main.ts'],
    define: {
      ...ofPlatform.define,
      __BUILD_DATE__: String(readBuildDate() * 1000),
      'import.meta.url': '__bundleUrl',
      'import.meta.filename': '__filename',
    },
    banner: fileUrlBanner,
  }),
  'edgeplatformctl.cjs': await bundle({
    ...startedByUsers('edgeplatformctl', ofPlatform),
    entryPoints: ['src/edgeplatformctl/main.ts'],
  }),
  'backup.cjs': await bundle({ ...ofPlatform, entryPoints: ['src/edgeplatformd/backup.ts'] }),
  'support.cjs': await bundle({ ...programOptions, entryPoints: ['src/support/main.ts'] }),
  'platform.cjs': await bundle({ ...programOptions, entryPoints: ['src/connect/main.ts'] }),
  'definition.cjs': await bundle({ ...programOptions, entryPoints: ['src/authoring/main.ts'] }),
  'examine.cjs': await bundle({ ...programOptions, entryPoints: ['src/definition/examination/main.ts'] }),
  'content.cjs': await bundle({ ...programOptions, entryPoints: ['src/content/program/main.ts'] }),
  'prepare.cjs': await bundle({ ...programOptions, entryPoints: ['src/cluster/prepare/main.ts'] }),
  'keeper.cjs': await bundle({ ...programOptions, entryPoints: ['src/system/lasting/main.ts'] }),
  'inventory.cjs': await bundle({ ...programOptions, entryPoints: ['src/inventory/program/main.ts'] }),
  'verb.cjs': await bundle({ ...programOptions, entryPoints: ['src/edgehostd/verb-program.ts'] }),
  'step.cjs': await bundle({ ...programOptions, entryPoints: ['src/cluster/step-program/main.ts'] }),
}
for (const [name, file] of Object.entries(separatePackages))
  files[file] = await bundle({ ...baseOptions, entryPoints: [name] })

mkdirSync(output, { recursive: true })
for (const name of readdirSync(output)) {
  if (/^(.*\.[cm]js|daemon-.*|third-party\.txt)$/.test(name)) rmSync(`${output}/${name}`)
}
for (const [name, text] of Object.entries(files)) writeFileSync(`${output}/${name}`, text)
for (const path of await bundleConsole('host', `${output}/console`)) inputs.add(path)
for (const path of await bundleConsole('platform', `${output}/platform-console`)) inputs.add(path)
writeFileSync(`${output}/third-party.txt`, collectLicenses([...inputs]))

/** Options of a program that a user may start with any Node, even one that is too old. */
function startedByUsers(name: string, options: typeof programOptions | typeof ofPlatform = programOptions) {
  // esbuild would remove the prefix `node:`, which the oldest of these does not know. But an old Node ends in the banner, before
  // any import, and a newer one needs the prefix, since node:sqlite has no other name.
  const supported = {
    ...programOptions.supported,
    'node-colon-prefix-import': true,
    'node-colon-prefix-require': true,
  }
  return { ...options, target: oldestSyntax, supported, banner: { js: requireNode(name) } }
}

interface BundleOptions extends BuildOptions {
  write: false
  metafile: true
  inspect?: (metafile: Metafile) => void
}

/** The text of a program; its sources are recorded for the list of licenses. */
async function bundle({ inspect, ...options }: BundleOptions): Promise<string> {
  const { outputFiles, metafile } = await build(options)
  inspect?.(metafile)
  const [file] = outputFiles
  if (!file) throw new Error('esbuild wrote nothing')
  for (const path of Object.keys(metafile.inputs)) inputs.add(path)
  return file.text
}

/**
 * Packages of their own are loaded by the daemon when it needs them, never by its start: each takes some percent of it.
 * @throws Error with the chain of imports that would load one
 */
function requireLoadedLater({ inputs: sources, outputs }: Metafile): void {
  const kept = new Set(Object.values(outputs).flatMap((each) => Object.keys(each.inputs)))
  const [entry = ''] = Object.values(outputs).map((each) => each.entryPoint)
  const importers = new Map<string, string>([[entry, '']])
  // The map grows while it is read.
  for (const path of importers.keys())
    for (const { path: imported, kind, external } of sources[path]?.imports ?? []) {
      if (kind === 'dynamic-import') continue
      if (Object.values(separatePackages).includes(imported)) {
        const chain = [imported]
        for (let at = path; at !== ''; at = importers.get(at) ?? '') chain.unshift(at)
        throw new Error(`the start of the daemon would load a package of its own: ${chain.join(' > ')}`)
      }
      if (external !== true && kept.has(imported) && !importers.has(imported)) importers.set(imported, path)
    }
}

/** The licenses of all packages whose code is in a bundle, as one text. */
function collectLicenses(inputs: readonly string[]): string {
  const folders = inputs.flatMap((path) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  return [...new Set(folders)]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(
        readFileSync(`${root}/${folder}/package.json`, 'utf8'),
      ) as {
        name: string
        version: string
        license?: string
      }
      const files = readdirSync(`${root}/${folder}`).filter((entry) =>
        /^(licen[cs]e|copying|notice)/i.test(entry),
      )
      const texts = files.sort().map((entry) => readFileSync(`${root}/${folder}/${entry}`, 'utf8').trim())
      return `==== ${name} ${version} (${license ?? 'see below'})\n\n${texts.join('\n\n')}\n`
    })
    .join('\n')
}
