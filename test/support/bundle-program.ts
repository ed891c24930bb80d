import { join } from 'node:path'
import { buildSync } from 'esbuild'

/**
 * Bundles a program as it ships.
 * @param folder of src with its main.ts
 */
export function bundleProgram(folder: string, outfile: string): void {
  buildSync({
    entryPoints: [join(import.meta.dirname, '../../src', folder, 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    define: { __VERSION__: '"test"', 'import.meta.dirname': '__dirname' },
  })
}
