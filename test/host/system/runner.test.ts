import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CommandFailed, createRunner } from '../../../src/system/runner.ts'

const runner = createRunner()
const timeoutMs = 10_000
const node = process.execPath

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-runner-'))
})
afterEach(() => rm(folder, { recursive: true }))

const failure = async (run: Promise<unknown>): Promise<string> => {
  const error: unknown = await run.then(
    () => 'no error',
    (reason: unknown) => reason,
  )
  return error instanceof CommandFailed ? error.reason : String(error)
}

describe('a program', () => {
  it('ends with its exit code and its output, the last newline included', async () => {
    const result = await runner.run('sh', ['-c', 'echo out; echo err >&2; exit 3'], { timeoutMs })
    expect(result).toMatchObject({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' })
  })

  it('that a signal ends has no exit code', async () => {
    const result = await runner.run('sh', ['-c', 'kill -9 $$'], { timeoutMs })
    expect(result.exitCode).toBeUndefined()
  })

  it('that is not there could not be started', async () => {
    expect(await failure(runner.run('/no/such/program', [], { timeoutMs }))).toBe('not-started')
    expect(await failure(runner.run('no-such-program', [], { timeoutMs }))).toBe('not-started')
  })

  it('that may not be executed could not be started', async () => {
    expect(await failure(runner.run('/etc/passwd', [], { timeoutMs }))).toBe('not-started')
  })

  it('gets its arguments as they are: no shell looks at them', async () => {
    const args = ['$(id)', '`id`', ';id', '|id', '* ?', "'", '"', '', '-n', '\n', 'ü']
    const program = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))'
    const { stdout } = await runner.run(node, ['-e', program, '--', ...args], { timeoutMs })
    expect(JSON.parse(stdout)).toEqual(args)
  })

  it('stands back as far as it is told', async () => {
    const nice = async (options: { niceness?: number }) =>
      (await runner.run('sh', ['-c', 'sleep 0.2; nice'], { timeoutMs, ...options })).stdout
    const own = getPriority()
    expect([await nice({}), await nice({ niceness: own + 3 })]).toEqual([`${own}\n`, `${own + 3}\n`])
  })

  it('is heard only where something is wrong, if that is enough', async () => {
    const result = await runner.run('sh', ['-c', 'echo out; echo err >&2'], { timeoutMs, onlyErrors: true })
    expect(result).toMatchObject({ exitCode: 0, stdout: '', stderr: 'err\n' })
  })

  it('runs in the root folder', async () => {
    expect((await runner.run('pwd', [], { timeoutMs })).stdout).toBe('/\n')
  })
})

describe('a program that is told more while it runs', () => {
  const echo = 'process.stdin.on("data", (chunk) => process.stdout.write(chunk))'

  it('reads each text as it comes, and the end', async () => {
    async function* texts() {
      yield 'one\n'
      await new Promise((resolve) => setImmediate(resolve))
      yield 'two\n'
    }
    const { stdout } = await runner.run(node, ['-e', echo], { timeoutMs, input: texts() })
    expect(stdout).toBe('one\ntwo\n')
  })

  it('may end before all is said', async () => {
    const never = Promise.withResolvers<string>()
    async function* texts() {
      yield 'one\n'
      yield await never.promise
    }
    const result = await runner.run('sh', ['-c', 'read line; echo $line; exit 4'], {
      timeoutMs,
      input: texts(),
    })
    expect(result).toMatchObject({ exitCode: 4, stdout: 'one\n' })
  })

  it('is ended by its signal, before it begins and later', async () => {
    const controller = new AbortController()
    const running = failure(runner.run('sleep', ['60'], { timeoutMs, signal: controller.signal }))
    controller.abort()
    expect(await running).toBe('ended')
    expect(await failure(runner.run('sleep', ['60'], { timeoutMs, signal: controller.signal }))).toBe('ended')
  })
})

describe('the environment of a program', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it('is fixed: nothing of the own one reaches it', async () => {
    for (const name of ['LD_PRELOAD', 'LD_LIBRARY_PATH', 'NODE_OPTIONS', 'BASH_ENV', 'ENV', 'PYTHONPATH'])
      vi.stubEnv(name, join(folder, 'hostile'))
    vi.stubEnv('PATH', folder)
    vi.stubEnv('LC_ALL', 'de_DE.UTF-8')
    await writeFile(join(folder, 'env'), '#!/bin/sh\necho hostile\n', { mode: 0o755 })
    const { stdout } = await runner.run('env', [], { timeoutMs })
    expect(stdout.trim().split('\n').sort()).toEqual([
      'LANG=C',
      'LC_ALL=C',
      'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    ])
  })

  it('holds what the caller adds', async () => {
    const { stdout } = await runner.run('env', [], { timeoutMs, environment: { NOTIFY_SOCKET: '/x' } })
    expect(stdout).toContain('NOTIFY_SOCKET=/x\n')
  })
})

describe('standard input', () => {
  it('is at its end when there is none', async () => {
    expect((await runner.run('cat', [], { timeoutMs })).stdout).toBe('')
  })

  it('reaches the program whole', async () => {
    const input = 'ü\n'.repeat(100_000)
    expect((await runner.run('cat', [], { timeoutMs, input, maxOutputBytes: 1_000_000 })).stdout).toBe(input)
  })

  it('may stay unread', async () => {
    const result = await runner.run('sh', ['-c', 'exit 4'], { timeoutMs, input: 'x'.repeat(1_000_000) })
    expect(result.exitCode).toBe(4)
  })

  it('shows in no command line and no environment of the machine while the program runs', async () => {
    const secret = randomUUID()
    const [begun, done] = [join(folder, 'begun'), join(folder, 'done')]
    const script = 'read line; touch "$1"; while [ ! -e "$2" ]; do sleep 0.02; done; echo "${#line}"'
    const run = runner.run('sh', ['-c', script, 'sh', begun, done], { timeoutMs, input: `${secret}\n` })
    await expect.poll(() => readdir(folder)).toContain('begun')
    const seen = await readEveryProcess()
    expect(
      seen.some((text) => text.includes(done)),
      'the program itself is seen',
    ).toBe(true)
    expect(seen.filter((text) => text.includes(secret))).toEqual([])
    await writeFile(done, '')
    expect((await run).stdout).toBe('36\n')
  })
})

async function readEveryProcess(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const files = pids.flatMap((pid) => ['cmdline', 'environ', 'comm'].map((file) => `/proc/${pid}/${file}`))
  return Promise.all(files.map((file) => readFile(file, 'latin1').catch(() => '')))
}

describe('a limit', () => {
  it('of time ends a program that sleeps', async () => {
    const began = performance.now()
    expect(await failure(runner.run('sleep', ['60'], { timeoutMs: 100 }))).toBe('timed-out')
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  it('of time ends a program that ignores SIGTERM', async () => {
    const file = join(folder, 'pid')
    const program = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)
      require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.pid))`
    expect(await failure(runner.run(node, ['-e', program], { timeoutMs: 1_500 }))).toBe('timed-out')
    const pid = Number(await readFile(file, 'utf8'))
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  // The children hold the pipes for 6 s; a second after the program was ended the pipes are closed.
  it.each([
    ['of time, that has ended', 'sleep 6 & exit 0', 'timed-out'],
    ['of time', 'sleep 6 & exec sleep 60', 'timed-out'],
    ['of output', 'sleep 6 & exec yes', 'output-too-large'],
  ])('%s does not wait for the child that a program left', async (_what, script, reason) => {
    const began = performance.now()
    const options = { timeoutMs: reason === 'timed-out' ? 200 : timeoutMs, maxOutputBytes: 1_000 }
    expect(await failure(runner.run('sh', ['-c', script], options))).toBe(reason)
    expect(performance.now() - began).toBeLessThan(4_000)
  })

  it('by a signal does not wait for the child that a program left', async () => {
    const began = performance.now()
    const controller = new AbortController()
    const options = {
      timeoutMs,
      signal: controller.signal,
      onStarted: () => void setTimeout(() => controller.abort(), 100),
    }
    expect(await failure(runner.run('sh', ['-c', 'sleep 6 & exec sleep 60'], options))).toBe('ended')
    expect(performance.now() - began).toBeLessThan(4_000)
  })

  it('of output ends a program that writes more', async () => {
    const run = runner.run('yes', [], { timeoutMs, maxOutputBytes: 1_000 })
    expect(await failure(run)).toBe('output-too-large')
  })

  it.each([
    ['ignores SIGTERM', 'trap "" TERM PIPE; yes & while :; do :; done'],
    ['has ended and left a child that goes on', 'yes & exit 0'],
    ['writes errors', 'yes >&2'],
  ])('of output ends a program that %s', async (_what, script) => {
    const began = performance.now()
    const run = runner.run('sh', ['-c', script], { timeoutMs, maxOutputBytes: 1_000 })
    expect(await failure(run)).toBe('output-too-large')
    expect(performance.now() - began).toBeLessThan(5_000)
  })
})

it('an error of the runner names the program, and not what it was given', async () => {
  const run = runner.run('sleep', ['60'], { timeoutMs: 50, input: 'a secret' })
  const error: unknown = await run.catch((reason: unknown) => reason)
  expect(String((error as Error).stack) + JSON.stringify(error)).not.toContain('a secret')
  expect((error as Error).message).toBe('sleep: timed-out (50 ms)')
})
