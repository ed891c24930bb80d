// Bundles the daemon: dist/daemon.cjs, everything of src and its packages in one file, and dist/main.cjs, which
// loads it with V8's compile cache (docs/architecture.md says why two); its command line, dist/edgehostctl.cjs; and
// what `edgehostctl support` and `edgehostctl definition` become, dist/support.cjs and dist/definition.cjs; and what
// checks archives for the daemon, dist/examine.cjs.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { build, type BuildOptions } from 'esbuild'
import { readBuildDate } from './build-date.ts'

const root = `${import.meta.dirname}/..`
const output = `${root}/dist`
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string }

const shared = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  // Names stay: a stack trace in a journal has to be readable without the tree.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  write: false,
} as const satisfies BuildOptions

// CommonJS, since only a classic script can be compiled from a cache that holds its lazy functions too.
const { text: daemon, inputs } = await bundle({
  ...shared,
  entryPoints: ['src/main.ts'],
  format: 'cjs',
  define: {
    __VERSION__: JSON.stringify(version),
    __BUILD_DATE__: String(readBuildDate() * 1000),
    'import.meta.url': '__bundleUrl',
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
  },
  banner: { js: "const __bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
})
// The loader reads the bundle as Latin-1, which keeps V8 at one byte a character.
if (!/^\p{ASCII}*$/u.test(daemon)) throw new Error('the bundle holds characters outside ASCII')

const { text: loader } = await bundle({
  ...shared,
  entryPoints: ['build/loader.ts'],
  // Classic too: Node's loader of modules costs 20 ms before the first line of ours.
  format: 'cjs',
  define: {
    'import.meta.dirname': '__dirname',
    // V8 compares a cache with its source by length only, so the cache is named after the content.
    __BUNDLE_HASH__: JSON.stringify(createHash('sha256').update(daemon).digest('hex').slice(0, 16)),
  },
})

// The second program. It starts without a cache, so what few commands need, and is larger than all else, is a file of
// its own.
const { text: client, inputs: clientInputs } = await bundle({
  ...shared,
  entryPoints: ['src/ctl/main.ts'],
  format: 'cjs',
  define: { __VERSION__: JSON.stringify(version), 'import.meta.dirname': '__dirname' },
  alias: { yaml: './yaml.cjs' },
  external: ['./yaml.cjs'],
  // A require is enough and does not load Node's loader of modules.
  supported: { 'dynamic-import': false },
})
const { text: support, inputs: supportInputs } = await bundle({
  ...shared,
  entryPoints: ['src/support/main.ts'],
  format: 'cjs',
  define: { __VERSION__: JSON.stringify(version), 'import.meta.dirname': '__dirname' },
})
const { text: definition, inputs: definitionInputs } = await bundle({
  ...shared,
  entryPoints: ['src/authoring/main.ts'],
  format: 'cjs',
  define: { 'import.meta.dirname': '__dirname' },
})
const { text: examine, inputs: examineInputs } = await bundle({
  ...shared,
  entryPoints: ['src/cluster/examination/main.ts'],
  format: 'cjs',
})
const { text: yaml, inputs: yamlInputs } = await bundle({ ...shared, entryPoints: ['yaml'], format: 'cjs' })

mkdirSync(output, { recursive: true })
for (const name of readdirSync(output)) {
  if (/^(main\.mjs|daemon[-.].*|third-party\.txt)$/.test(name)) rmSync(`${output}/${name}`)
}
writeFileSync(`${output}/daemon.cjs`, daemon)
writeFileSync(`${output}/main.cjs`, loader)
writeFileSync(`${output}/edgehostctl.cjs`, client)
writeFileSync(`${output}/support.cjs`, support)
writeFileSync(`${output}/definition.cjs`, definition)
writeFileSync(`${output}/examine.cjs`, examine)
writeFileSync(`${output}/yaml.cjs`, yaml)
writeFileSync(
  `${output}/third-party.txt`,
  collectLicenses([
    ...inputs,
    ...clientInputs,
    ...supportInputs,
    ...definitionInputs,
    ...examineInputs,
    ...yamlInputs,
  ]),
)

async function bundle(
  options: BuildOptions & { write: false; metafile: true },
): Promise<{ text: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build(options)
  const [file] = outputFiles
  if (!file) throw new Error('esbuild wrote nothing')
  return { text: file.text, inputs: Object.keys(metafile.inputs) }
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
