import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createCtl, type Ctl } from './ctl.ts'
import { authoringProgram } from './programs.ts'

/** What `content inspect -o json` shows. */
export interface Inspected {
  readonly indexDigest: string
  readonly blobCount: number
  readonly sizeBytes: number
  readonly sharedBytes: number
  readonly architectures: readonly string[]
  readonly definition?: { readonly digest: string; readonly sizeBytes: number }
  readonly entries: readonly (Readonly<Record<string, unknown>> & {
    readonly kind: string
    readonly digest: string
    readonly name?: string
    readonly tag?: string
    readonly title?: string
    readonly version?: string
    readonly platforms: readonly { readonly architecture: string; readonly isCarried: boolean }[]
  })[]
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
}

/** edgehostctl with the program of bundles, in a folder of its own. */
export interface ContentCtl extends Ctl {
  at(name: string): string
  /** `content build` with these options. */
  build(...options: readonly string[]): ReturnType<Ctl['run']>
  /** What it shows as JSON. @throws Error if it fails */
  built(...options: readonly string[]): Promise<{ indexDigest: string; contentBytes: number }>
  /** @throws Error if `content inspect` fails */
  inspected(path: string): Promise<Inspected>
  remove(): void
}

export function createContentCtl(): ContentCtl {
  const ctl = createCtl()
  const at = (name: string) => join(ctl.home, name)
  copyFileSync(authoringProgram(), at('definition.cjs'))
  const build = (...options: readonly string[]) => ctl.run(['content', 'build', ...options])
  const parse = ({ exitCode, stdout, stderr }: Awaited<ReturnType<Ctl['run']>>): unknown => {
    if (exitCode !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }
  return {
    ...ctl,
    at,
    build,
    built: async (...options) =>
      parse(await build(...options, '-o', 'json')) as { indexDigest: string; contentBytes: number },
    inspected: async (path) => parse(await ctl.run(['content', 'inspect', path, '-o', 'json'])) as Inspected,
    remove: () => rmSync(ctl.home, { recursive: true }),
  }
}
