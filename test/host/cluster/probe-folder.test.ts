import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { foldersToProbe, judgeFolder, probeFolder } from '../../../src/cluster/host/probe-folder.ts'
import { createBoundedRunner } from '../../../src/system/bounded-memory.ts'
import { createRunner, type CommandRunner } from '../../../src/system/runner.ts'

const runner = createRunner()
const folder = await mkdtemp(join(tmpdir(), 'probe-'))
const place = join(folder, 'state')
await mkdir(place)
afterAll(() => rm(folder, { recursive: true }))

/** A runner whose programs see what a script has mounted, and no one else. */
const withMounts = (script: string): CommandRunner => ({
  run: (program, args, options) =>
    runner.run(
      'unshare',
      ['--mount', 'sh', '-euc', `cd "$0"; ${script}; exec "$@"`, folder, program, ...args],
      options,
    ),
})
const judge = async (script: string) => {
  const probe = await probeFolder(withMounts(script), place)
  expect(probe).toBeDefined()
  return judgeFolder(probe)
}
const { exitCode } = await runner.run('unshare', ['--mount', 'true'], { timeoutMs: 10_000 })

// Mounts need root.
describe.skipIf(exitCode !== 0)('the folder of the state', () => {
  it('is fit on a tmpfs without options, and nothing of the probe stays', async () => {
    expect(await judge('mount -t tmpfs tmpfs state')).toEqual([])
    expect(await readdir(place)).toEqual([])
  })

  it('has nothing of a probe that is ended, as by its time limit', async () => {
    const programs = join(folder, 'programs')
    await mkdir(programs)
    await writeFile(join(programs, 'chmod'), '#!/bin/sh\nkill -TERM $PPID\n', { mode: 0o755 })
    expect(await probeFolder(withMounts(`PATH=${programs}:$PATH`), place)).toBeUndefined()
    expect(await readdir(place)).toEqual([])
  })

  it('is refused with noexec, by its mount point and option', async () => {
    const found = await judge('mount -t tmpfs -o noexec tmpfs state')
    expect(found).toMatchObject([{ code: 'FileSystemUnusable', severity: 'error' }])
    expect(found[0]?.message).toContain(
      `the file system tmpfs that is mounted at ${place} has the option noexec; take it away: mount -o remount,exec ${place}`,
    )
  })

  it('is refused where root cannot write, with the reason of the system, at a path with blanks too', async () => {
    const odd = join(folder, 'a b\\c')
    await mkdir(odd)
    const probe = await probeFolder(withMounts(`mount -t tmpfs -o ro tmpfs '${odd}'`), odd)
    const [found, ...others] = judgeFolder(probe)
    expect(others).toEqual([])
    expect(found).toMatchObject({ code: 'FileSystemUnusable', severity: 'error' })
    expect(found?.message).toContain(
      `root cannot write in ${odd}, on the file system tmpfs that is mounted at ${odd} (`,
    )
    expect(found?.message).toContain('Read-only file system')
  })

  it('is judged by the mount that is seen there: one of itself, below it, and over the folder above it', async () => {
    // A bind mount with an option of its own.
    expect(
      await judge('mount -t tmpfs tmpfs state; mount --bind state state; mount -o remount,bind,noexec state'),
    ).toMatchObject([{ message: expect.stringContaining('has the option noexec') as string }])
    // A mount below it has other options, which do not count.
    expect(
      await judge(
        'mount -t tmpfs tmpfs state; mkdir state/content; mount -t tmpfs -o noexec tmpfs state/content',
      ),
    ).toEqual([])
    expect(
      await judge('mount -t tmpfs -o noexec tmpfs state; mount -t tmpfs tmpfs .; cd "$PWD"; mkdir state'),
    ).toEqual([])
  })

  it('is refused on an overlay, which takes no overlay', async () => {
    const found = await judge(
      'mount -t tmpfs tmpfs state; mkdir state/l state/u state/w; mount -t overlay o -o lowerdir=state/l,upperdir=state/u,workdir=state/w state',
    )
    expect(found).toMatchObject([{ code: 'FileSystemUnusable', severity: 'error' }])
    expect(found[0]?.message).toContain(
      `the file system overlay that is mounted at ${place} takes no overlay`,
    )
  })

  it('a program that cannot be begun there is told from one that has refused what it read', async () => {
    const program = join(place, 'run')
    const mounted = createBoundedRunner(
      withMounts(
        "mount -t tmpfs -o noexec tmpfs state; printf '#!/bin/sh\\n' > state/run; chmod 700 state/run",
      ),
    )
    for (const [name, ...args] of [[program], ['timeout', '9', program]] as const)
      await expect(mounted.run(name, args, { timeoutMs: 20_000 })).rejects.toMatchObject({
        reason: 'not-started',
        detail: `cannot be run: ${program}: Permission denied`,
      })
    const says = (line: string, exitCode: number) =>
      createBoundedRunner(runner).run('sh', ['-c', `echo '${line}' >&2; exit ${exitCode}`], {
        timeoutMs: 20_000,
      })
    const line = `prlimit: failed to execute ${program}: Permission denied`
    expect(await says('Error: 126', 126)).toMatchObject({ exitCode: 126 })
    expect(await says(line, 1)).toMatchObject({ exitCode: 1 })
    await expect(says(line, 126)).rejects.toMatchObject({ reason: 'not-started' })
  })
})

it('folders of the cluster are tried where a file system is mounted at them, and not for its containers', () => {
  const state = '/var/lib/edgehostd'
  const table = (...mounts: readonly string[]) =>
    ['22 1 8:1 / / rw - ext4 /dev/sda1 rw', ...mounts].map((each) => `${each}\n`).join('')
  const container = `40 22 0:50 / ${state}/cluster/containerd/x rw - overlay overlay rw`
  expect(foldersToProbe(table(container), state)).toEqual([state])
  expect(foldersToProbe('', state)).toEqual([state])
  const disk = `30 22 8:17 / ${state}/cluster rw,noexec - xfs /dev/sdb1 rw`
  expect(foldersToProbe(table(disk, container), state)).toEqual([state, `${state}/cluster`])
  const layers = `31 30 0:33 / ${state}/cluster/containerd rw - zfs tank/layers rw`
  expect(foldersToProbe(table(disk, layers), state)).toEqual([
    ...[state, `${state}/cluster`, `${state}/cluster/containerd`],
  ])
  // Hidden by a later mount.
  expect(foldersToProbe(table(disk, `41 22 8:33 / ${state} rw - ext4 /dev/sdc1 rw`), state)).toEqual([state])
})
