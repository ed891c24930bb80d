// The two programs that the package carries and this project does not make: the Node runtime and pamtester. Both
// are pinned by hash in the tree, fetched by the machine's own npm and apt, and kept under .cache/.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const cache = `${root}/.cache`

/** Architecture by Debian's name. */
export type Architecture = 'amd64' | 'arm64'

/** A program and the text of its license. */
export interface Part {
  readonly program: Buffer
  readonly license: string
}

/**
 * The Node runtime from its npm package, in the version of build/toolchain/package-lock.json.
 * @throws Error when the hash of the package is not the one in the lockfile
 */
export function fetchRuntime(architecture: Architecture): Part {
  const name = `node-linux-${architecture === 'amd64' ? 'x64' : architecture}`
  const lock = JSON.parse(readFileSync(`${import.meta.dirname}/toolchain/package-lock.json`, 'utf8')) as {
    packages: Record<string, { version: string; integrity?: string } | undefined>
  }
  const locked = lock.packages[`node_modules/${name}`]
  if (!locked?.integrity?.startsWith('sha512-'))
    throw new Error(`build/toolchain/package-lock.json does not pin ${name}`)
  // `make` has installed the runtime of this machine, and npm compared it with the same hash.
  const installed = `${cache}/toolchain/node_modules/${name}`
  if (existsSync(`${installed}/bin/node`)) return readRuntime(installed)
  const archive = `${cache}/${name}-${locked.version}.tgz`
  if (!existsSync(archive)) {
    mkdirSync(cache, { recursive: true })
    say(`fetching ${name} ${locked.version}`)
    execFileSync(
      'npm',
      ['pack', '--silent', '--fetch-retries=5', `--pack-destination=${cache}`, `${name}@${locked.version}`],
      {
        cwd: root,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
  }
  requireHash(archive, 'sha512', 'base64', locked.integrity.slice('sha512-'.length))
  return unpack(`runtime-${architecture}`, (folder) => {
    const members = ['package/bin/node', 'package/LICENSE']
    execFileSync('tar', ['-xzf', archive, '-C', folder, ...members])
    return readRuntime(`${folder}/package`)
  })
}

function readRuntime(folder: string): Part {
  return { program: readFileSync(`${folder}/bin/node`), license: readFileSync(`${folder}/LICENSE`, 'utf8') }
}

/**
 * pamtester from Debian's archive, by the machine's apt. The architectures and lists of apt do not change.
 * @throws Error when the hash of the file is not the one in pamtester.lock
 */
export function fetchPamtester(architecture: Architecture): Part {
  const line = readFileSync(`${import.meta.dirname}/pamtester.lock`, 'utf8')
    .split('\n')
    .find((text) => text.startsWith(`${architecture} `))
  const [, poolPath, sha256] = line?.split(' ') ?? []
  if (poolPath === undefined || sha256 === undefined) throw new Error(`pamtester.lock lacks ${architecture}`)
  const archive = `${cache}/${basename(poolPath)}`
  if (!existsSync(archive)) {
    mkdirSync(cache, { recursive: true })
    say(`fetching ${basename(poolPath)}`)
    const options = { stdio: ['ignore', 'ignore', 'inherit'] as ['ignore', 'ignore', 'inherit'], cwd: cache }
    const url = `${findArchive()}${poolPath}`
    execFileSync(
      '/usr/lib/apt/apt-helper',
      [
        '-o',
        'APT::Sandbox::User=root',
        '-o',
        'Acquire::Retries=5',
        'download-file',
        url,
        archive,
        `SHA256:${sha256}`,
      ],
      options,
    )
  }
  requireHash(archive, 'sha256', 'hex', sha256)
  return unpack(`pamtester-${architecture}`, (folder) => {
    execFileSync('dpkg-deb', ['--extract', archive, folder])
    return {
      program: readFileSync(`${folder}/usr/bin/pamtester`),
      license: readFileSync(`${folder}/usr/share/doc/pamtester/copyright`, 'utf8'),
    }
  })
}

/** URL of the Debian archive from which apt would fetch the pamtester of this machine, up to the pool. */
function findArchive(): string {
  const ask = (options: readonly string[]) => {
    try {
      const args = [...options, 'download', '--print-uris', 'pamtester']
      const output = execFileSync('apt-get', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      return /^'(.*\/)pool\/main\/p\/pamtester\//m.exec(output)?.[1]
    } catch {
      return undefined
    }
  }
  const known = ask([])
  if (known !== undefined) return known
  // apt has no package lists yet: fetch them into a folder of our own.
  const state = `${cache}/apt`
  mkdirSync(`${state}/lists/partial`, { recursive: true })
  mkdirSync(`${state}/archives/partial`, { recursive: true })
  const own = ['-o', `Dir::State::Lists=${state}/lists`, '-o', `Dir::Cache=${state}`]
  execFileSync('apt-get', [...own, '-qq', 'update'], { stdio: ['ignore', 'ignore', 'inherit'] })
  const found = ask(own)
  if (found === undefined) throw new Error("apt does not find pamtester: add Debian's sources to /etc/apt")
  return found
}

function unpack(name: string, read: (folder: string) => Part): Part {
  const folder = `${cache}/${name}`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const part = read(folder)
  rmSync(folder, { recursive: true })
  return part
}

function requireHash(file: string, algorithm: string, encoding: 'hex' | 'base64', expected: string): void {
  const actual = createHash(algorithm).update(readFileSync(file)).digest(encoding)
  if (actual === expected) return
  rmSync(file)
  throw new Error(`${basename(file)} has ${algorithm} ${actual}, not the pinned ${expected}, and was removed`)
}

const say = (message: string) => process.stderr.write(`${message}\n`)
