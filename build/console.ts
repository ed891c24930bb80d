// Bundles the pages for browsers, of a host into dist/console and of the platform into dist/platform-console: one script and one style, named
// after their content, the document that names them, and the compressed form of each beside it, so that the daemon compresses nothing.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

const root = `${import.meta.dirname}/..`

/** The oldest browsers whose users get the pages. */
const browsers = ['chrome116', 'edge116', 'firefox128', 'safari17.4']

/** The folders below src/console that have pages: their program, and the command for a browser without JavaScript. */
const programs = {
  host: { program: 'edgehostd', command: 'edgehostctl --host ADDRESS status' },
  platform: { program: 'edgeplatformd', command: 'edgeplatformctl --host ADDRESS host list' },
}
export type ConsoleProgram = keyof typeof programs

/**
 * Writes the pages of one program.
 * @param folder absolute; what is in it goes
 * @returns the paths of the sources, for the list of licenses
 */
export async function bundleConsole(program: ConsoleProgram, folder: string): Promise<readonly string[]> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { console: `src/console/${program}/app.tsx`, style: 'src/console/shared/style.css' },
    outdir: folder,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    target: browsers,
    define: { __CONSOLE__: JSON.stringify(program) },
    tsconfig: 'src/console/tsconfig.json',
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
    write: false,
  })
  const built = outputFiles.map(({ path, contents }) => [nameOf(path), Buffer.from(contents)] as const)
  const named = (ending: string) => built.find(([name]) => name.endsWith(ending))?.[0] ?? ''
  const page = readFileSync(`${root}/src/console/shared/index.html`, 'utf8')
    .replace('@PROGRAM@', programs[program].program)
    .replace('@COMMAND@', programs[program].command)
    .replace('@STYLE@', named('.css'))
    .replace('@SCRIPT@', named('.js'))
    .replace(/\n\s+/g, '\n')
  const files = [
    ...built,
    ['index.html', Buffer.from(page)] as const,
    ['icon.svg', readFileSync(`${root}/src/console/shared/icon.svg`)] as const,
  ]
  for (const [name, body] of files) {
    writeFileSync(`${folder}/${name}`, body)
    writeFileSync(`${folder}/${name}.gz`, gzipSync(body, { level: 9 }))
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
    }
    writeFileSync(`${folder}/${name}.br`, brotliCompressSync(body, { params }))
  }
  return sourcesOf(metafile)
}

const nameOf = (path: string) => path.split('/').at(-1) ?? ''

const sourcesOf = ({ inputs }: Metafile) => Object.keys(inputs)
