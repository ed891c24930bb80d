import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { LastingRunOptions, LastingRuns, RunEnd } from '../../src/system/lasting/runs.ts'

// What is true of lasting runs, whether they are units or sessions: test/host runs these here, test/e2e on a booted host.

interface Given {
  readonly runs: LastingRuns
  /** Folder of the runs. */
  readonly folder: string
}

const timeoutMs = 60_000

/** Runs a script of the shell to its end. */
async function run({ runs }: Given, name: string, script: string, options: Partial<LastingRunOptions> = {}) {
  await runs.start(name, 'sh', ['-c', script], { timeoutMs, ...options })
  return read({ runs }, name)
}

async function read({ runs }: Pick<Given, 'runs'>, name: string, since = 0) {
  const lines: string[] = []
  const cursors: number[] = []
  const end = await runs.follow(name, {
    since,
    onLine(line, cursor) {
      lines.push(line)
      cursors.push(cursor)
    },
  })
  return { end, lines, cursors }
}

/** The first line of a run, as soon as it exists. */
function firstLine({ runs }: Given, name: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const reading = new AbortController()
    const onLine = (line: string) => {
      resolve(line)
      reading.abort()
    }
    runs.follow(name, { since: 0, onLine, signal: reading.signal }).catch(reject)
  })
}

async function until(condition: () => boolean): Promise<void> {
  const last = performance.now() + 20_000
  while (!condition()) {
    ok(performance.now() < last, `in time: ${condition.toString()}`)
    await delay(20)
  }
}
/** Without /proc, which the sandbox of the daemon hides. */
function lives(pid: string): boolean {
  try {
    return process.kill(Number(pid), 0)
  } catch {
    return false
  }
}
/** How a run ended, without the time. */
function howOf({ end }: { end: RunEnd }) {
  if (end.kind === 'gone') return end
  const { endedAt, ...how } = end
  ok(Math.abs(Date.now() - endedAt) < 600_000)
  return how
}
const refusedAs = (reason: string) => ({ name: 'RunRefused', reason })

export const scenarios: Readonly<Record<string, (given: Given) => Promise<void>>> = {
  async 'a run ends with its exit code, and its lines can be read from each cursor, including a last one without a line end'(
    given,
  ) {
    const whole = await run(given, 'lines', 'echo one; echo two >&2; sleep 0.5; printf three; exit 7')
    deepEqual(howOf(whole), { kind: 'exited', exitCode: 7, leftOutBytes: 0 })
    deepEqual([...whole.lines].sort(), ['one', 'three', 'two'])
    for (const [index, cursor] of [0, ...whole.cursors].entries())
      deepEqual((await read(given, 'lines', cursor)).lines, whole.lines.slice(index))
    deepEqual((await given.runs.find('lines'))?.end, whole.end)
  },

  async 'a run passes on lines while its command runs'(given) {
    const gate = join(given.folder, 'gate')
    await given.runs.start(
      'live',
      'sh',
      ['-c', `echo begun; until [ -e ${gate} ]; do sleep 0.05; done; echo done`],
      { timeoutMs },
    )
    equal(await firstLine(given, 'live'), 'begun')
    equal((await given.runs.find('live'))?.end, undefined)
    await given.runs.start('open-gate', 'touch', [gate], { timeoutMs })
    deepEqual((await read(given, 'live')).lines, ['begun', 'done'])
  },

  async 'a run gives its command the arguments as they are, without expansion by a shell or systemd'(given) {
    const args = ['$HOME', '$$', '${PATH}', '%n', '%%', '', ' a  b ', "'", '"', '\\x41', '-n', 'ü', ';id']
    await given.runs.start('arguments', 'printf', ['<%s>\n', ...args], { timeoutMs })
    deepEqual(
      (await read(given, 'arguments')).lines,
      args.map((argument) => `<${argument}>`),
    )
    deepEqual((await given.runs.find('arguments'))?.args, ['<%s>\n', ...args])
  },

  async 'a run has a fixed environment and the variables that are added'(given) {
    const environment = { ADDED: 'a $HOME' }
    const { lines } = await run(given, 'environment', 'env | grep -v ^_= | grep -v ^PWD=; pwd', {
      environment,
    })
    deepEqual(lines.sort(), [
      '/',
      'ADDED=a $HOME',
      'LANG=C',
      'LC_ALL=C',
      'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    ])
  },

  async 'a run gives its input to the command alone, from a file that is removed before it is read'(given) {
    const input = 'a secret\n'.repeat(20_000)
    const script = 'ls "$0"; stat -c %a "$0"; wc -c; tr "\\0" " " < /proc/$PPID/cmdline'
    await given.runs.start('input', 'sh', ['-c', script, join(given.folder, 'input')], { timeoutMs, input })
    const { lines } = await read(given, 'input')
    ok(!lines.slice(0, -3).includes('input'), lines.join('\n'))
    ok(lines.includes(String(input.length)))
    ok(!lines.join('\n').includes('a secret'))
    const left = await readdir(join(given.folder, 'input'))
    deepEqual(left.sort(), ['exit', 'lock', 'order.json', 'output'])
  },

  async 'a run without input reads end-of-file'(given) {
    deepEqual((await run(given, 'no-input', 'cat; echo end')).lines, ['end'])
  },

  async 'a run is refused while one of its name runs, and replaces an ended one'(given) {
    await given.runs.start('twice', 'sleep', ['60'], { timeoutMs })
    const second = () => given.runs.start('twice', 'echo', ['second'], { timeoutMs })
    await rejects(second(), refusedAs('running'))
    await rejects(given.runs.remove('twice'), refusedAs('running'))
    await given.runs.stop('twice')
    await second()
    deepEqual((await read(given, 'twice')).lines, ['second'])
  },

  async 'a run that is being started does not count as gone, and keeps its input'(given) {
    const input = 'the input\n'
    const started = given.runs.start('early', 'cat', [], { timeoutMs, input }).then(() => true)
    do ok((await given.runs.find('early'))?.end?.kind !== 'gone')
    while (!(await Promise.race([started, delay(1, false)])))
    deepEqual((await read(given, 'early')).lines, ['the input'])
  },

  async 'of two starts of a run at once one succeeds'(given) {
    const start = () => given.runs.start('at-once', 'sleep', ['60'], { timeoutMs })
    const [one, other] = await Promise.allSettled([start(), start()])
    deepEqual([one.status, other.status], ['fulfilled', 'rejected'])
    await given.runs.stop('at-once')
  },

  async 'a run reports the signal that killed its command'(given) {
    const killed = await run(given, 'killed', 'echo begun; kill -9 $$')
    deepEqual(howOf(killed), { kind: 'killed', signal: 'SIGKILL', leftOutBytes: 0 })
    deepEqual(killed.lines, ['begun'])
  },

  async 'a run reports why its command could not be started'(given) {
    await given.runs.start('missing', '/no/such/program', [], { timeoutMs })
    deepEqual(howOf(await read(given, 'missing')), {
      kind: 'not-started',
      reason: 'ENOENT',
      leftOutBytes: 0,
    })
  },

  async 'a stop ends all that the command of a run started, after its last output'(given) {
    const script = 'trap "echo stopping; exit 3" TERM; sleep 61 & echo $!; wait'
    await given.runs.start('stop', 'sh', ['-c', script], { timeoutMs })
    const child = await firstLine(given, 'stop')
    ok(lives(child))
    const end = await given.runs.stop('stop')
    deepEqual(howOf({ end }), { kind: 'exited', exitCode: 3, leftOutBytes: 0, endedBy: 'stop' })
    deepEqual((await read(given, 'stop')).lines, [child, 'stopping'])
    await until(() => !lives(child))
    deepEqual(await given.runs.stop('stop'), end)
  },

  async 'a run whose command ignores the stop is killed'(given) {
    const script = 'trap "" TERM; echo deaf; while :; do sleep 0.1; done'
    await given.runs.start('deaf', 'sh', ['-c', script], { timeoutMs })
    await firstLine(given, 'deaf')
    const end = await given.runs.stop('deaf')
    deepEqual(howOf({ end }), { kind: 'killed', signal: 'SIGKILL', leftOutBytes: 0, endedBy: 'stop' })
  },

  async 'a run is ended at its time limit'(given) {
    const late = await run(given, 'late', 'echo begun; exec sleep 60', { timeoutMs: 1_000 })
    deepEqual(howOf(late), { kind: 'killed', signal: 'SIGTERM', leftOutBytes: 0, endedBy: 'time' })
  },

  async 'a run whose keeper was killed is gone, and its output is kept'(given) {
    await given.runs.start('gone', 'sh', ['-c', 'echo $PPID; exec sleep 5'], { timeoutMs })
    const keeper = await firstLine(given, 'gone')
    process.kill(Number(keeper), 'SIGKILL')
    deepEqual(await read(given, 'gone'), {
      end: { kind: 'gone', reason: 'vanished' },
      lines: [keeper],
      cursors: [keeper.length + 1],
    })
  },

  async 'a run ends although a process that its command left holds the output open'(given) {
    const began = performance.now()
    const left = await run(given, 'left', 'setsid sleep 30 & echo $!; exit 4')
    deepEqual(howOf(left), { kind: 'exited', exitCode: 4, leftOutBytes: 0 })
    ok(performance.now() - began < 15_000)
    if (lives(left.lines[0]!)) process.kill(Number(left.lines[0]), 'SIGKILL')
  },

  async 'a run keeps 64 MiB of output and the last lines, and counts the rest'(given) {
    const { end, lines } = await run(given, 'much', 'seq 1 10000000; echo the end >&2; exit 5')
    const { exitCode, leftOutBytes } = end as RunEnd & { exitCode: number; leftOutBytes: number }
    equal(exitCode, 5)
    const { length } = await readFile(join(given.folder, 'much/output'))
    ok(length <= 67_108_864, `${length} bytes`)
    ok(length > 66_000_000, `${length} bytes`)
    const said = Array.from({ length: 10_000_000 }, (_, index) => String(index + 1).length + 1)
    const whole = said.reduce((sum, size) => sum + size, 'the end\n'.length)
    const heading = lines.findIndex((line) => line.startsWith('['))
    match(lines[heading]!, new RegExp(`^\\[${leftOutBytes} bytes of output are left out here`))
    const kept = lines.slice(0, heading).filter((line) => line !== 'the end')
    ok(kept.every((line, index) => line === String(index + 1)))
    equal(Buffer.byteLength(`${lines.slice(0, heading).join('\n')}\n`) + leftOutBytes, whole)
    deepEqual(lines.slice(-20).includes('10000000'), true)
    await given.runs.remove('much')
  },

  async 'a run is unknown once it is removed'(given) {
    await run(given, 'removed', 'echo one')
    await given.runs.remove('removed')
    equal(await given.runs.find('removed'), undefined)
    ok(!existsSync(join(given.folder, 'removed')))
    await rejects(given.runs.stop('removed'), refusedAs('unknown'))
    await rejects(read(given, 'removed'), refusedAs('unknown'))
  },

  async 'a run with a name that is unsafe for files and units, or an impossible time limit, is refused'(
    given,
  ) {
    for (const name of [
      '',
      '.',
      '..',
      'a/b',
      'A',
      '-a',
      'a.b',
      'a b',
      'a\n',
      '%n',
      '$a',
      'ü',
      'a'.repeat(65),
    ]) {
      await rejects(given.runs.start(name, 'true', [], { timeoutMs }), refusedAs('bad-name'), name)
      await rejects(given.runs.find(name), refusedAs('bad-name'))
    }
    for (const bad of [0, -1, 1.5, NaN, Infinity, 2 ** 31])
      await rejects(given.runs.start('time', 'true', [], { timeoutMs: bad }), refusedAs('bad-timeout'))
    await given.runs.start('a'.repeat(64), 'true', [], { timeoutMs: 2 ** 31 - 1 })
    equal((await read(given, 'a'.repeat(64))).end.kind, 'exited')
  },
}
