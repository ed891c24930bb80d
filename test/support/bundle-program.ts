import { join } from 'node:path'
import { buildSync } from 'esbuild'

/**
 * Bundles a program as it ships.
 * @param folder of src with its main.ts
 * @param ofProgram the program whose names it takes, and the name of its file in the folder
 * @returns the files that are a part of it
 */
export function bundleProgram(
  folder: string,
  outfile: string,
  { program, file } = { program: 'edgehostd', file: 'main.ts' },
): string[] {
  const { metafile } = buildSync({
    entryPoints: [join(import.meta.dirname, '../../src', folder, file)],
    absWorkingDir: join(import.meta.dirname, '../..'),
    metafile: true,
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    define: {
      __VERSION__: '"test"',
      __PROGRAM__: JSON.stringify(program),
      __BUILD_DATE__: '0',
      'import.meta.dirname': '__dirname',
      'import.meta.filename': '__filename',
      'import.meta.url': '__bundleUrl',
    },
    banner: { js: "const __bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
  })
  return Object.keys(metafile.inputs)
}
