import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { output } from './host/process.ts'
import { cache } from './host/roots.ts'

const checkout = join(import.meta.dirname, '../..')
const sources = ['Makefile', 'build', 'certs', 'docs', 'src', 'systemd', 'tsconfig.json']
const packages = ['package.json', 'package-lock.json', 'node_modules']

// Ahead of the clock, as on a machine whose own is behind: then no file is younger, and dpkg-deb corrects none.
const buildDate = String(Date.UTC(2035, 0) / 1_000)

/** What differs between two people who build the same tree. */
interface Circumstances {
  /** Below a folder of the test. */
  readonly path: string
  readonly umask: string
  /** Of every file, as touch(1) takes it. */
  readonly changed: string
  readonly env: Readonly<Record<string, string>>
}

const here: Circumstances = {
  path: 'here',
  umask: '022',
  changed: '2026-11-01T08:00:00Z',
  env: { TZ: 'UTC', LC_ALL: 'C' },
}
// Node takes the language from LC_ALL even where the machine has no such locale, and Turkish has its own i.
const there: Circumstances = {
  path: 'a/much/longer/path/to/the/same/tree',
  umask: '077',
  changed: '2031-02-03T04:05:06Z',
  env: { TZ: 'Pacific/Kiritimati', LC_ALL: 'tr_TR.UTF-8', HOME: '/nonexistent' },
}

let folder: string

beforeAll(async () => {
  // The next run removes the folder by this name if this one is killed.
  folder = await mkdtemp(join(tmpdir(), `edgehost-${process.pid}-`))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Copies the tree, without git and without anything built, and makes the packages there: for Debian and for npm. */
async function makePackages({ path, umask, changed, env }: Circumstances): Promise<Buffer[]> {
  const tree = join(folder, path)
  const under = (script: string, ...args: string[]) =>
    output(
      'bash',
      ['--norc', '-euo', 'pipefail', '-c', `umask ${umask}; cd "$1"; shift; ${script}`, 'sh', ...args],
      {
        env: { SOURCE_DATE_EPOCH: buildDate, ...env },
        // Only ends what hangs: all is built anew.
        timeoutMs: 600_000,
      },
    )
  await mkdir(join(tree, '.cache'), { recursive: true })
  await under('cp --recursive "$@"', checkout, ...sources, ...packages, tree)
  await under('cp --recursive "$1" .cache', tree, join(cache, 'toolchain'))
  await copyPamtester(tree)
  // The same time for all, otherwise make would take the copied packages for older than the lockfile.
  await under('find . -exec touch --no-dereference --date "$1" {} +', tree, changed)
  await under('make package ARCHITECTURES="$(dpkg --print-architecture)"', tree)
  const made = (await readdir(join(tree, 'dist'))).filter((name) => /\.(deb|tgz)$/.test(name)).sort()
  expect(made).toEqual([
    expect.stringMatching(/^edgehostctl-.*\.tgz$/),
    expect.stringMatching(/^edgehostd-kubernetes_.*_all\.deb$/),
    expect.stringMatching(/^edgehostd_.*\.deb$/),
    expect.stringMatching(/^edgeplatform_.*\.deb$/),
  ])
  return await Promise.all(made.map((name) => readFile(join(tree, 'dist', name))))
}

/** Avoids a second download of the archive. */
async function copyPamtester(tree: string): Promise<void> {
  if (!existsSync(cache)) return
  for (const name of (await readdir(cache)).filter((each) => /^pamtester_.*\.deb$/.test(each)))
    await cp(join(cache, name), join(tree, '.cache', name))
}

describe('each package', () => {
  it('a package is the same to the byte at another path, under another umask, time zone, language and time', async () => {
    const hashes: string[][] = []
    for (const circumstances of [here, there]) {
      const made = await makePackages(circumstances)
      hashes.push(made.map((bytes) => hash('sha256', bytes)))
    }
    expect(hashes[1]).toEqual(hashes[0])
  })
})
