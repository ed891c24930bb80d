import { join } from 'node:path'
import { buildSync } from 'esbuild'

/**
 * Bundles a program as it ships.
 * @param folder of src with its main.ts; `.` is the daemon
 */
export function bundleProgram(folder: string, outfile: string): void {
  buildSync({
    entryPoints: [join(import.meta.dirname, '../../src', folder, 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    define: {
      __VERSION__: '"test"',
      __BUILD_DATE__: '0',
      'import.meta.dirname': '__dirname',
      'import.meta.filename': '__filename',
      'import.meta.url': '__bundleUrl',
    },
    banner: { js: "const __bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
  })
}
