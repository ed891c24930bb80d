import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { output, systemPath } from './process.ts'

const checkout = join(import.meta.dirname, '../../..')

/** The sources of the package. */
const inputs = ['Makefile', 'build', 'certs', 'docs', 'package-lock.json', 'package.json', 'src', 'systemd']

/** The package of this checkout, built by `make package` when a source is newer; or the one in E2E_DEB. */
export async function makePackage(): Promise<string> {
  if (process.env.E2E_DEB) return process.env.E2E_DEB
  const existing = await newestPackage()
  if (existing && (await changedAt(existing)) > (await newestInput())) return existing
  const runtime = join(process.execPath, '..')
  await output('make', ['-C', checkout, 'package'], {
    timeoutMs: 600_000,
    env: { ...onlyStrings(process.env), PATH: `${runtime}:${process.env.PATH ?? systemPath}` },
  })
  const made = await newestPackage()
  if (!made) throw new Error('make package left no dist/edgehostd_*_amd64.deb')
  return made
}

/** The package that depends on what a cluster needs of Debian; `make package` makes it beside that of a host. */
export async function kubernetesPackage(deb: string): Promise<Buffer> {
  const dist = dirname(deb)
  const [name] = (await readdir(dist)).filter((each) => /^edgehostd-kubernetes_.*_all\.deb$/.test(each))
  if (name === undefined) throw new Error(`make package left no edgehostd-kubernetes_*_all.deb in ${dist}`)
  return readFile(join(dist, name))
}

/** The same package under another version, for an upgrade. */
export async function repack(deb: string, version: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-repack-'))
  try {
    const tree = join(folder, 'tree')
    await output('dpkg-deb', ['--raw-extract', deb, tree])
    const control = join(tree, 'DEBIAN/control')
    await writeFile(
      control,
      (await readFile(control, 'utf8')).replace(/^Version: .*$/m, `Version: ${version}`),
    )
    const made = join(folder, 'edgehostd.deb')
    await output('dpkg-deb', ['--build', '--root-owner-group', '-Znone', tree, made])
    return await readFile(made)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function newestPackage(): Promise<string | undefined> {
  const dist = join(checkout, 'dist')
  if (!existsSync(dist)) return undefined
  const found = (await readdir(dist)).filter((name) => /^edgehostd_.*_amd64\.deb$/.test(name))
  const dated = await Promise.all(
    found.map(async (name) => ({ file: join(dist, name), at: await changedAt(join(dist, name)) })),
  )
  return dated.sort((a, b) => b.at - a.at)[0]?.file
}

async function newestInput(): Promise<number> {
  const files = await Promise.all(
    inputs.map(async (name) => {
      const path = join(checkout, name)
      if (!existsSync(path)) return []
      if ((await stat(path)).isFile()) return [path]
      const entries = await readdir(path, { recursive: true, withFileTypes: true })
      return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    }),
  )
  return Math.max(...(await Promise.all(files.flat().map(changedAt))))
}

const changedAt = async (file: string) => (await stat(file)).mtimeMs

const onlyStrings = (environment: NodeJS.ProcessEnv) =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
