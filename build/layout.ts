// What the packages of both programs share: how files are laid out, with modes that do not depend on the umask.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readBuildDate } from './build-date.ts'
import type { Architecture } from './parts.ts'

const root = resolve(import.meta.dirname, '..')

/** A file of an installed package. */
export interface InstalledFile {
  /** Without the leading slash. */
  readonly path: string
  readonly mode: 0o644 | 0o755
  readonly content: string | Buffer
  /** Belongs to the administrator once it exists; never overwritten. */
  readonly isConfiguration?: boolean
}

/** What a Debian package of ours is made of. */
export interface PackageLayout {
  /** Of the package and of its files. */
  readonly name: string
  /** Folder of its control file and of the scripts that it has. */
  readonly control: string
  /** Whether one package is for every architecture. */
  readonly isForAll?: boolean
  /** Words in the control file, in the form @WORD@, and what stands in their place. */
  readonly words?: Readonly<Record<string, string>>
  /** Every file; needs a finished `make build`. */
  readonly listFiles: (architecture: Architecture) => InstalledFile[]
  /** Paths of the files that belong to the administrator once they exist. */
  readonly configurationPaths: readonly string[]
  readonly emptyFolders: readonly string[]
}

/** Version from package.json. */
export const version = (JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string })
  .version

/** Creates the files of a package, and the empty folders for files of an administrator. */
export function layOutPackage(
  files: readonly InstalledFile[],
  emptyFolders: readonly string[],
  folder: string,
): void {
  requireWhole(files)
  layOut(files, folder)
  for (const path of emptyFolders) makeFolder(join(folder, path))
}

/** Our programs load some packages when they need them, so a missing one would show only then. @throws Error naming it */
function requireWhole(files: readonly InstalledFile[]): void {
  const paths = new Set(files.map(({ path }) => path))
  for (const { path, content } of files)
    if (path.endsWith('.cjs'))
      for (const [, needed = ''] of content.toString().matchAll(/\brequire\("\.\/([^"]+)"\)/g))
        if (!paths.has(join(dirname(path), needed)))
          throw new Error(`${path} needs ${needed}, which is not in the package`)
}

/** Writes files below a folder. */
export function layOut(files: readonly InstalledFile[], folder: string): void {
  for (const { path, mode, content, isConfiguration } of files) {
    const target = join(folder, path)
    if (isConfiguration && existsSync(target)) continue
    makeFolder(dirname(target))
    writeFileSync(target, content, { mode })
    chmodSync(target, mode)
  }
}

function makeFolder(path: string): void {
  const made = mkdirSync(path, { recursive: true })
  for (let each = path; made && each.length >= made.length; each = dirname(each)) chmodSync(each, 0o755)
}

/**
 * Documents of docs/ by their paths below it, sorted. Every package brings all of them: messages name some (`documentPath`), and they link
 * to each other.
 */
export const documentNames: readonly string[] = readdirSync(`${root}/docs`, {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => /\.md$|^definition\.schema\.json$|^monitoring\/.*\.(ya?ml|json)$/.test(name))
  .sort()

/** A document of docs/. */
export const readDocument = (name: string): Buffer => readFileSync(`${root}/docs/${name}`)

/** The changelog of a package, as dpkg expects it. */
export function changelog(name: string): string {
  const date = new Date(readBuildDate() * 1000).toUTCString().replace('GMT', '+0000')
  return `${name} (${version}) stable; urgency=medium\n\n  * See the project's history.\n\n -- ${name} <root@localhost>  ${date}\n`
}
