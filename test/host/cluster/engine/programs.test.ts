import { createHash } from 'node:crypto'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createPrograms } from '../../../../src/cluster/engine/programs.ts'
import type { FoundProgram } from '../../../../src/content/store/find.ts'
import { createRunner } from '../../../../src/system/runner.ts'

let home: string
let found: Map<string, FoundProgram>
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'edgehostd-programs-'))
  found = new Map()
})
afterEach(() => rm(home, { recursive: true }))

/** Puts a program into the content of the test. @param blobs folder of its files */
async function carry(name: string, version: string, title: string, script: string, blobs = home) {
  const path = join(blobs, `blob-${name}-${version}`)
  await writeFile(path, script, { mode: 0o600 })
  const digest = `sha256:${createHash('sha256').update(script).digest('hex')}`
  const sizeBytes = script.length
  found.set(`${name} ${version}`, {
    bundle: { uid: 'b', name: 'plant' },
    entryDigest: `sha256:entry-${name}-${version}`,
    digest: `sha256:manifest-${version}-${script.length}`,
    isWhole: true,
    files: [{ title, digest, sizeBytes, path, mode: 0o755 }],
  })
  return path
}
const programs = (hostFolder?: string) =>
  createPrograms({
    folder: join(home, 'programs'),
    hostFolder,
    content: {
      findProgram: async ({ name, version }) => found.get(`${name} ${version}`),
      programVersions: async (name) =>
        [...found.keys()]
          .filter((key) => key.startsWith(`${name} `))
          .map((key) => key.slice(name.length + 1)),
    },
    architecture: 'amd64',
    runner: createRunner(),
  })

it('a program is laid out by its version, can be executed, and takes no more of the disk', async () => {
  const blob = await carry('kubelet', '1.34.4', 'bin/kubelet', '#!/bin/sh\necho four')
  const { use, current, hasCurrent } = programs()
  expect(await hasCurrent('kubelet')).toBe(false)
  expect(await use('kubelet', '1.34.4')).toBe('kubelet 1.34.4')
  expect(await hasCurrent('kubelet')).toBe(true)
  const { stdout } = await createRunner().run(current('kubelet'), [], { timeoutMs: 5_000 })
  expect(stdout).toBe('four\n')
  expect((await stat(current('kubelet'))).ino).toBe((await stat(blob)).ino)
  // Its bundle may be deleted.
  await unlink(blob)
  expect(await readFile(current('kubelet'), 'utf8')).toContain('four')
})

it('another version lies beside the first, and the current one is a link that changes in one step', async () => {
  await carry('kubelet', '1.33.13', 'kubelet', 'three')
  await carry('kubelet', 'v1.34.4', 'kubelet', 'four')
  const { use, place } = programs()
  await use('kubelet', '1.33.13')
  await place('kubelet', '1.34.4')
  expect(await readlink(join(home, 'programs/kubelet/current'))).toMatch(/1\.33\.13$/)
  await use('kubelet', '1.34.4')
  expect(await readFile(join(home, 'programs/kubelet/current/kubelet'), 'utf8')).toBe('four')
  expect((await readdir(join(home, 'programs/kubelet'))).sort()).toEqual(['1.33.13', 'current', 'v1.34.4'])
})

it('what a kill has left of a layout is removed by the next one', async () => {
  await carry('helm', '3', 'helm', 'one')
  await mkdir(join(home, 'programs/helm/.0123456789abcdef.tmp/bin'), { recursive: true })
  await symlink('3', join(home, 'programs/helm/current.0123456789abcdef.tmp'))
  await programs().place('helm', '3')
  expect(await readdir(join(home, 'programs/helm'))).toEqual(['3'])
})

it('a version whose files have changed in the content is laid out again, one that is there is not', async () => {
  await carry('helm', '3', 'helm', 'one')
  const { place } = programs()
  const path = await place('helm')
  const first = await stat(path)
  await place('helm')
  expect((await stat(path)).ctimeMs).toBe(first.ctimeMs)
  await carry('helm', '3', 'helm', 'another')
  expect(await readFile(await place('helm'), 'utf8')).toBe('another')
})

it('a copy to another file system is checked against its digest', async () => {
  const far = await mkdtemp('/dev/shm/edgehostd-programs-')
  try {
    const blob = await carry('helm', '3', 'helm', 'one', far)
    expect((await stat(home)).dev).not.toBe((await stat(far)).dev)
    expect(await readFile(await programs().place('helm'), 'utf8')).toBe('one')
    await carry('helm', '4', 'helm', 'two', far)
    await writeFile(join(far, 'blob-helm-4'), 'owt')
    await expect(programs().place('helm', '4')).rejects.toThrow(
      'the file helm in the bundle plant is damaged; upload that bundle again',
    )
    expect(await readdir(join(home, 'programs/helm'))).toEqual(['3'])
    expect(await readFile(blob, 'utf8')).toBe('one')
  } finally {
    await rm(far, { recursive: true })
  }
})

it('a program that is in no bundle, or damaged, is refused with what to do', async () => {
  const { find, place } = programs()
  await expect(place('kubeadm', '1.34.4')).rejects.toThrow(
    'no bundle of this host has the program kubeadm 1.34.4 for amd64; upload a bundle made with: edgehostctl content build --programs kubeadm=1.34.4:DIR',
  )
  await carry('kubeadm', '1.34.4', 'kubeadm', 'x')
  found.set('kubeadm 1.34.4', { ...found.get('kubeadm 1.34.4')!, isWhole: false })
  expect(await find('kubeadm', '1.34.4')).toMatchObject({ kind: 'missing', code: 'ProgramDamaged' })
  await carry('kubectl', '1.34.4', 'other', 'x')
  await expect(place('kubectl', '1.34.4')).rejects.toThrow('has no file kubectl')
})

it('a program of the configured folder is used where its version is that of the cluster', async () => {
  const folder = join(home, 'host')
  await mkdir(folder)
  await writeFile(join(folder, 'kubelet'), '#!/bin/sh\necho Kubernetes v1.34.4', { mode: 0o755 })
  await carry('helm', '3', 'helm', 'one')
  const { find, use, current } = programs(folder)
  expect(await use('kubelet', '1.34.4')).toBe(`kubelet of ${folder}`)
  expect(await readlink(join(home, 'programs/kubelet/current'))).toBe(folder)
  expect(await readFile(current('kubelet'), 'utf8')).toContain('v1.34.4')
  expect(await find('kubelet', '1.33.13')).toEqual({
    kind: 'missing',
    code: 'ProgramOfAnotherVersion',
    reason: `${folder}/kubelet is of version 1.34.4, and the cluster needs 1.33.13; install that version, or remove cluster.programs.directory from the configuration`,
  })
  expect(await find('helm')).toMatchObject({ kind: 'content', version: '3' })
  await writeFile(join(folder, 'kubelet'), '#!/no/such/shell\n', { mode: 0o755 })
  expect(await find('kubelet', '1.34.4')).toEqual({
    ...{ kind: 'missing', code: 'ProgramUnusable' },
    reason: `the version of ${folder}/kubelet cannot be asked for: kubelet cannot be run: ${folder}/kubelet: No such file or directory`,
  })
})
