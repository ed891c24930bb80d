import { createHash, randomUUID } from 'node:crypto'
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
  it('a run gives exit code and output, including the last newline', async () => {
    const result = await runner.run('sh', ['-c', 'echo out; echo err >&2; exit 3'], { timeoutMs })
    expect(result).toMatchObject({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' })
  })

  it('a program that a signal ended has no exit code', async () => {
    const result = await runner.run('sh', ['-c', 'kill -9 $$'], { timeoutMs })
    expect(result.exitCode).toBeUndefined()
  })

  it('a missing program could not be started', async () => {
    expect(await failure(runner.run('/no/such/program', [], { timeoutMs }))).toBe('not-started')
    expect(await failure(runner.run('no-such-program', [], { timeoutMs }))).toBe('not-started')
  })

  it('a program without execute permission could not be started', async () => {
    expect(await failure(runner.run('/etc/passwd', [], { timeoutMs }))).toBe('not-started')
  })

  it('a program gets its arguments as they are, without a shell', async () => {
    const args = ['$(id)', '`id`', ';id', '|id', '* ?', "'", '"', '', '-n', '\n', 'ü']
    const program = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))'
    const { stdout } = await runner.run(node, ['-e', program, '--', ...args], { timeoutMs })
    expect(JSON.parse(stdout)).toEqual(args)
  })

  it('a program runs with the given nice value', async () => {
    const nice = async (options: { niceness?: number }) =>
      (await runner.run('sh', ['-c', 'sleep 0.2; nice'], { timeoutMs, ...options })).stdout
    const own = getPriority()
    expect([await nice({}), await nice({ niceness: own + 3 })]).toEqual([`${own}\n`, `${own + 3}\n`])
  })

  it('with onlyErrors standard output is discarded', async () => {
    const result = await runner.run('sh', ['-c', 'echo out; echo err >&2'], { timeoutMs, onlyErrors: true })
    expect(result).toMatchObject({ exitCode: 0, stdout: '', stderr: 'err\n' })
  })

  it('a program runs in the root folder', async () => {
    expect((await runner.run('pwd', [], { timeoutMs })).stdout).toBe('/\n')
  })
})

describe('a program with streamed input', () => {
  const echo = 'process.stdin.on("data", (chunk) => process.stdout.write(chunk))'

  it('a program reads each text of its input as it is yielded, and the end', async () => {
    async function* texts() {
      yield 'one\n'
      await new Promise((resolve) => setImmediate(resolve))
      yield 'two\n'
    }
    const { stdout } = await runner.run(node, ['-e', echo], { timeoutMs, input: texts() })
    expect(stdout).toBe('one\ntwo\n')
  })

  it('a program may end before its input does', async () => {
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

  it('the bytes of a piece may be reused when the next one is asked for', async () => {
    const piece = Buffer.alloc(700_000)
    const hash = createHash('sha256')
    async function* pieces() {
      for (let round = 0; round < 20; round += 1) {
        hash.update(piece.fill(round))
        yield piece
      }
      piece.fill(255)
    }
    const { stdout } = await runner.run('sha256sum', [], { timeoutMs, input: pieces() })
    expect(stdout).toBe(`${hash.digest('hex')}  -\n`)
  })

  it('a program that ends without reading its input ends the iterable', async () => {
    const ended = Promise.withResolvers<string>()
    async function* pieces() {
      try {
        for (;;) yield Buffer.alloc(1_000_000)
      } finally {
        ended.resolve('ended')
      }
    }
    const result = await runner.run('sh', ['-c', 'exit 4'], { timeoutMs, input: pieces() })
    expect(result.exitCode).toBe(4)
    expect(await ended.promise).toBe('ended')
  })

  it('a program whose child keeps its input open ends the iterable', async () => {
    const ended = Promise.withResolvers<string>()
    async function* pieces() {
      try {
        for (;;) yield Buffer.alloc(1_000_000)
      } finally {
        ended.resolve('ended')
      }
    }
    const script = 'sleep 5 <&0 >/dev/null 2>&1 & exit 4'
    const result = await runner.run('bash', ['-c', script], { timeoutMs, input: pieces() })
    expect(result.exitCode).toBe(4)
    expect(await ended.promise).toBe('ended')
  })

  it('when the iterable fails, the program reads end-of-file', async () => {
    async function* pieces() {
      yield Buffer.from('one')
      await Promise.reject(new Error('no more'))
    }
    expect((await runner.run('cat', [], { timeoutMs, input: pieces() })).stdout).toBe('one')
  })

  it('a program with streamed input is ended by its signal, before its start and later', async () => {
    const controller = new AbortController()
    const running = failure(runner.run('sleep', ['60'], { timeoutMs, signal: controller.signal }))
    controller.abort()
    expect(await running).toBe('ended')
    expect(await failure(runner.run('sleep', ['60'], { timeoutMs, signal: controller.signal }))).toBe('ended')
  })
})

describe('the environment of a program', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it("the environment of a program is fixed, with nothing of the daemon's own", async () => {
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

  it('the environment of a program includes what the caller adds', async () => {
    const { stdout } = await runner.run('env', [], { timeoutMs, environment: { NOTIFY_SOCKET: '/x' } })
    expect(stdout).toContain('NOTIFY_SOCKET=/x\n')
  })
})

describe('standard input', () => {
  it('without input a program reads end-of-file', async () => {
    expect((await runner.run('cat', [], { timeoutMs })).stdout).toBe('')
  })

  it('a program reads its whole input', async () => {
    const input = 'ü\n'.repeat(100_000)
    expect((await runner.run('cat', [], { timeoutMs, input, maxOutputBytes: 1_000_000 })).stdout).toBe(input)
  })

  it('a program need not read its input', async () => {
    const result = await runner.run('sh', ['-c', 'exit 4'], { timeoutMs, input: 'x'.repeat(1_000_000) })
    expect(result.exitCode).toBe(4)
  })

  it('input is in no command line and no environment of the machine while the program runs', async () => {
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
  it('the time limit ends a program that sleeps', async () => {
    expect(await failure(runner.run('sleep', ['infinity'], { timeoutMs: 100 }))).toBe('timed-out')
  })

  it('the time limit ends a program that ignores SIGTERM', async () => {
    const file = join(folder, 'pid')
    const program = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)
      require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.pid))`
    expect(await failure(runner.run(node, ['-e', program], { timeoutMs: 1_500 }))).toBe('timed-out')
    const pid = Number(await readFile(file, 'utf8'))
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  /** Children that hold the pipes until they are killed here; a second after the program was ended the pipes are closed. */
  const left = 'sleep infinity & echo $! >child'
  async function endLeft() {
    const child = Number(await readFile(join(folder, 'child'), 'utf8'))
    expect(process.kill(child, 'SIGKILL')).toBe(true)
  }

  it.each([
    ['of time, that has ended', `${left}; exit 0`, 'timed-out'],
    ['of time', `${left}; exec sleep infinity`, 'timed-out'],
    ['of output', `${left}; exec yes`, 'output-too-large'],
  ])('a limit %s does not wait for the child that a program left', async (_what, script, reason) => {
    const options = { timeoutMs: reason === 'timed-out' ? 200 : timeoutMs, maxOutputBytes: 1_000 }
    expect(await failure(runner.run('sh', ['-c', `cd ${folder}; ${script}`], options))).toBe(reason)
    await endLeft()
  })

  it('an end by signal does not wait for the child that a program left', async () => {
    const controller = new AbortController()
    const options = {
      timeoutMs,
      signal: controller.signal,
      onStarted: () => void setTimeout(() => controller.abort(), 100),
    }
    const script = `cd ${folder}; ${left}; exec sleep infinity`
    expect(await failure(runner.run('sh', ['-c', script], options))).toBe('ended')
    await endLeft()
  })

  it('the output limit ends a program that writes more', async () => {
    const run = runner.run('yes', [], { timeoutMs, maxOutputBytes: 1_000 })
    expect(await failure(run)).toBe('output-too-large')
  })

  it.each([
    ['ignores SIGTERM', 'trap "" TERM PIPE; yes & while :; do :; done'],
    ['has ended and left a running child', 'yes & exit 0'],
    ['writes errors', 'yes >&2'],
  ])('the output limit ends a program that %s', async (_what, script) => {
    const run = runner.run('sh', ['-c', script], { timeoutMs, maxOutputBytes: 1_000 })
    expect(await failure(run)).toBe('output-too-large')
  })
})

it('an error of the runner names the program, and not its arguments or input', async () => {
  const run = runner.run('sleep', ['60'], { timeoutMs: 50, input: 'a secret' })
  const error: unknown = await run.catch((reason: unknown) => reason)
  expect(String((error as Error).stack) + JSON.stringify(error)).not.toContain('a secret')
  expect((error as Error).message).toBe('sleep: timed-out (50 ms)')
})
