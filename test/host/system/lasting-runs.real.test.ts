import { execFile, spawn } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { mkdtemp, open, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import {
  followOutput,
  createLastingRuns,
  type LastingRuns,
  type LastingRunsOptions,
} from '../../../src/system/lasting/runs.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { bundleProgram } from '../../support/bundle-program.ts'
import { keeperProgram } from '../../support/programs.ts'
import { waitFor } from '../../support/wait-for.ts'

const timeoutMs = 60_000
const exec = promisify(execFile)

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-lasting-'))
})
afterEach(() => rm(folder, { recursive: true }))

const createRuns = (options: Partial<LastingRunsOptions> = {}): LastingRuns =>
  createLastingRuns({
    runner: createRunner(),
    folder: join(folder, 'runs'),
    program: keeperProgram(),
    asUnits: false,
    ...options,
  })
async function read(runs: LastingRuns, name: string, since = 0) {
  const lines: string[] = []
  const end = await runs.follow(name, { since, onLine: (line) => lines.push(line) })
  return { lines, end }
}

describe('a run in a session of its own', () => {
  it('a run outlives the process that started it, killed twice, and each of its lines is read once', async () => {
    const driver = join(folder, 'driver.cjs')
    bundleProgram('../test/support/lasting-driver', driver)
    const script = 'for i in $(seq 1 30); do echo line $i; sleep 0.1; done; exit 7'
    const command = ['watch', 'long', 'sh', '-c', script]
    const life = () => {
      const args = [driver, keeperProgram(), join(folder, 'runs'), 'sessions', ...command]
      const child = spawn(process.execPath, args, { stdio: 'inherit' })
      onTestFinished(() => void child.kill('SIGKILL'))
      return child
    }
    const seen = async () =>
      (await readFile(join(folder, 'long.seen'), 'utf8').catch(() => ''))
        .split('\n')
        .filter(Boolean)
        .map((line) => line.replace(/^\d+ /, ''))
    for (const count of [3, 12]) {
      const child = life()
      await waitFor(async () => expect((await seen()).length).toBeGreaterThan(count), 10_000)
      child.kill('SIGKILL')
    }
    life()
    await waitFor(() => expect(existsSync(join(folder, 'long.end'))).toBe(true), 10_000)
    expect(await seen()).toEqual(Array.from({ length: 30 }, (_, index) => `line ${index + 1}`))
    expect(JSON.parse(await readFile(join(folder, 'long.end'), 'utf8'))).toMatchObject({
      kind: 'exited',
      exitCode: 7,
    })
  })

  it('a run is gone after a reboot, unless it had ended before', async () => {
    const bootIdFile = join(folder, 'boot_id')
    await writeFile(bootIdFile, 'first\n')
    const runs = createRuns({ bootIdFile })
    await runs.start('ended', 'echo', ['one'], { timeoutMs })
    await runs.follow('ended', { since: 0, onLine: () => undefined })
    await runs.start('cut', 'sh', ['-c', 'echo $PPID; exec sleep 60'], { timeoutMs })
    const keeper = Promise.withResolvers<number>()
    const reading = new AbortController()
    const onLine = (line: string) => keeper.resolve(Number(line))
    runs.follow('cut', { since: 0, onLine, signal: reading.signal }).catch(() => undefined)
    // As at a shutdown: the exit code of the cut-off command does not count.
    process.kill(await keeper.promise, 'SIGTERM')
    await waitFor(async () =>
      expect((await runs.find('cut'))?.end).toEqual({ kind: 'gone', reason: 'vanished' }),
    )
    reading.abort()
    await writeFile(bootIdFile, 'second\n')
    expect((await runs.find('ended'))?.end).toMatchObject({ kind: 'exited', exitCode: 0 })
    expect((await runs.find('cut'))?.end).toEqual({ kind: 'gone', reason: 'rebooted' })
    expect((await read(runs, 'cut')).lines).toEqual([String(await keeper.promise)])
  })

  it('a run whose files are damaged is gone or unknown, and can be started again', async () => {
    const runs = createRuns()
    await runs.start('damaged', 'echo', ['one'], { timeoutMs })
    await read(runs, 'damaged')
    await truncate(join(folder, 'runs/damaged/exit'), 5)
    await waitFor(async () =>
      expect((await runs.find('damaged'))?.end).toEqual({ kind: 'gone', reason: 'vanished' }),
    )
    await truncate(join(folder, 'runs/damaged/order.json'), 5)
    expect(await runs.find('damaged')).toBeUndefined()
    await runs.start('damaged', 'echo', ['two'], { timeoutMs })
    expect((await read(runs, 'damaged')).lines).toEqual(['two'])
  })

  it('a run whose keeper cannot begin is refused as not-started, and no files of it are left', async () => {
    const runs = createRuns({ program: '/no/such/keeper.cjs' })
    await expect(runs.start('broken', 'true', [], { timeoutMs })).rejects.toMatchObject({
      reason: 'not-started',
    })
    expect(await runs.find('broken')).toBeUndefined()
  })

  it('the end of a run is seen when its file is there, and not at the next look', async () => {
    const [path, exit] = [join(folder, 'output'), join(folder, 'exit')]
    await writeFile(path, 'one\n')
    await writeFile(`${exit}.reserved`, '')
    const output = await open(path)
    onTestFinished(() => output.close())
    const first = Promise.withResolvers<string>()
    const following = followOutput({
      ...{ output, exit, since: 0, pauseMs: 600_000, onLine: first.resolve },
      hasExit: () => Promise.resolve(existsSync(exit)),
      end: () => Promise.resolve(existsSync(exit) ? 'ended' : undefined),
    })
    await first.promise
    await rename(`${exit}.reserved`, exit)
    expect(await following).toBe('ended')
  })

  it('a cursor behind the end of a file that a power cut has shortened reads no lines', async () => {
    const runs = createRuns()
    await runs.start('short', 'echo', ['one'], { timeoutMs })
    await read(runs, 'short')
    expect((await read(runs, 'short', 1_000_000)).lines).toEqual([])
  })
})

// Only root may mount.
describe.skipIf(process.getuid?.() !== 0)('on a full disk', () => {
  beforeEach(() => exec('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'edgehostd-test', folder]))
  // The keeper has the folder in use for a moment after it has written the end of its run.
  afterEach(() => waitFor(() => exec('umount', [folder]), 5_000))

  const fill = () => {
    const block = Buffer.alloc(4_096, 1)
    try {
      for (;;) appendFileSync(join(folder, 'filler'), block)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }

  it('a run is not started where the disk is full', async () => {
    fill()
    const runs = createRuns()
    await expect(runs.start('full', 'true', [], { timeoutMs })).rejects.toMatchObject({ code: 'ENOSPC' })
    expect(await runs.find('full')).toBeUndefined()
  })

  it('a command still ends with its own exit code, and the output that was left out is counted', async () => {
    const runs = createRuns()
    const gate = join(folder, 'runs/full/gate')
    const script = `echo begun; until [ -e ${gate} ]; do sleep 0.05; done; seq 1 100000; exit 6`
    await runs.start('full', 'sh', ['-c', script], { timeoutMs })
    await waitFor(async () =>
      expect(await readFile(join(folder, 'runs/full/output'), 'utf8')).toBe('begun\n'),
    )
    // A rename needs no room.
    await writeFile(`${gate}.closed`, '')
    fill()
    await rename(`${gate}.closed`, gate)
    const { lines, end } = await read(runs, 'full')
    expect(end).toMatchObject({ kind: 'exited', exitCode: 6 })
    expect((end as { leftOutBytes: number }).leftOutBytes).toBeGreaterThan(500_000)
    expect(lines[0]).toBe('begun')
  })

  it('a run on a full disk can be stopped, and its end is recorded', async () => {
    const runs = createRuns()
    await runs.start('full', 'sleep', ['60'], { timeoutMs })
    fill()
    expect(await runs.stop('full')).toMatchObject({ kind: 'killed', signal: 'SIGTERM', endedBy: 'stop' })
  })
})
