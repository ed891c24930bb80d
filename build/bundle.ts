// Bundles the daemon: dist/daemon.cjs, everything of src and the packages that its start needs in one file, and
// dist/main.cjs, which loads it with V8's compile cache (docs/adr/0005 says why); its command line,
// dist/edgehostctl.cjs; the programs of `edgehostctl support` and `edgehostctl definition`, dist/support.cjs and
// dist/definition.cjs; the program that checks archives for the daemon, dist/examine.cjs; the keeper of commands that outlive the
// daemon, dist/keeper.cjs; the program that reads the inventory of the hardware, dist/inventory.cjs; and packages that they load
// only when they need them, each in a file of its own.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { build, type BuildOptions } from 'esbuild'
import { readBuildDate } from './build-date.ts'
import { neededNode, oldestSyntax, requireNode } from './needed-node.ts'

const root = `${import.meta.dirname}/..`
const output = `${root}/dist`
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string }

// Package -> its file. Large, and loaded by few commands, or by the daemon only after its start: V8 walks the whole text
// of a program more than once before the first line runs.
const apart: Readonly<Record<string, string>> = {
  execa: './execa.cjs',
  re2js: './re2js.cjs',
  '@peculiar/x509': './x509.cjs',
  yaml: './yaml.cjs',
}

const alone = {
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

const program = {
  ...alone,
  alias: apart,
  external: Object.values(apart),
  // A require is enough and does not load Node's loader of modules.
  supported: { 'dynamic-import': false },
  define: { __VERSION__: JSON.stringify(version), 'import.meta.dirname': '__dirname' },
} as const satisfies BuildOptions

const inputs = new Set<string>()

// CommonJS, since only a classic script can be compiled from a cache that holds its lazy functions too.
const daemon = await bundle({
  ...program,
  entryPoints: ['src/main.ts'],
  define: {
    ...program.define,
    __BUILD_DATE__: String(readBuildDate() * 1000),
    'import.meta.url': '__bundleUrl',
    'import.meta.filename': '__filename',
  },
  banner: { js: "const __bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
})
// The loader reads the bundle as Latin-1, which keeps V8 at one byte a character.
if (!/^\p{ASCII}*$/u.test(daemon)) throw new Error('the bundle contains characters outside ASCII')

// Classic too: Node's loader of modules costs 20 ms before the first line of ours.
const loader = await bundle({
  ...startedByPeople('edgehostd'),
  entryPoints: ['build/loader.ts'],
  define: {
    ...program.define,
    // V8 compares a cache with its source by length only, so the cache is named after the content.
    __BUNDLE_HASH__: JSON.stringify(createHash('sha256').update(daemon).digest('hex').slice(0, 16)),
  },
})

const files: Record<string, string> = {
  'daemon.cjs': daemon,
  'main.cjs': loader,
  'edgehostctl.cjs': await bundle({ ...startedByPeople('edgehostctl'), entryPoints: ['src/ctl/main.ts'] }),
  'support.cjs': await bundle({ ...program, entryPoints: ['src/support/main.ts'] }),
  'definition.cjs': await bundle({ ...program, entryPoints: ['src/authoring/main.ts'] }),
  'examine.cjs': await bundle({ ...program, entryPoints: ['src/definition/examination/main.ts'] }),
  'keeper.cjs': await bundle({ ...program, entryPoints: ['src/system/lasting/main.ts'] }),
  'inventory.cjs': await bundle({ ...program, entryPoints: ['src/inventory/program/main.ts'] }),
}
for (const [name, file] of Object.entries(apart))
  files[file] = await bundle({ ...alone, entryPoints: [name] })

mkdirSync(output, { recursive: true })
for (const name of readdirSync(output)) {
  if (/^(.*\.[cm]js|daemon-.*|third-party\.txt)$/.test(name)) rmSync(`${output}/${name}`)
}
for (const [name, text] of Object.entries(files)) writeFileSync(`${output}/${name}`, text)
writeFileSync(`${output}/third-party.txt`, collectLicenses([...inputs]))

/** Options of a program that may be started by any Node. */
function startedByPeople(name: string) {
  // The oldest Node of these knows no node: prefix; the ones that get as far need it, since node:sqlite has no other name.
  const supported = {
    ...program.supported,
    'node-colon-prefix-import': true,
    'node-colon-prefix-require': true,
  }
  return { ...program, target: oldestSyntax, supported, banner: { js: requireNode(name) } }
}

/** The text of a program; its sources are recorded for the list of licenses. */
async function bundle(options: BuildOptions & { write: false; metafile: true }): Promise<string> {
  const { outputFiles, metafile } = await build(options)
  const [file] = outputFiles
  if (!file) throw new Error('esbuild wrote nothing')
  for (const path of Object.keys(metafile.inputs)) inputs.add(path)
  return file.text
}

/** The terms of every package whose code is in the bundle. */
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
