import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createLogs, isCursor, parseSince, parseUnits } from '../../../src/diagnosis/logs.ts'
import type { LogEntry } from '../../../src/diagnosis/schemas.ts'
import { priorities } from '../../../src/host/journal.ts'
import type { CommandStreamer } from '../../../src/system/runner.ts'

const now = Date.parse('2026-01-31T10:00:00Z')
const debug = priorities.indexOf('debug')
const cursor = 's=0639b8f1c1d94d1c9b7a1f2e3d4c5b6a;i=4f2;b=1f;m=2a;t=3b;x=4c'

let count = 0
/** A line of journalctl. @param minutes before 10:00 */
const line = (minutes: number, message: unknown, more: Record<string, string> = {}) =>
  JSON.stringify({
    __CURSOR: `${cursor}${(count += 1)}`,
    __REALTIME_TIMESTAMP: String((now - minutes * 60_000) * 1_000),
    _SYSTEMD_UNIT: 'kubelet.service',
    PRIORITY: '6',
    _PID: '7',
    MESSAGE: message,
    ...more,
  })

/** @param lines of journalctl, the oldest first */
function start(lines: readonly string[], { hidden = 'none', clusterSince = 0 } = {}) {
  const steps = mkdtempSync(join(tmpdir(), 'edgehostd-steps-'))
  onTestFinished(() => rmSync(steps, { recursive: true }))
  const calls: (readonly string[])[] = []
  const streamer: CommandStreamer = {
    async stream(_program, args, { onLine, signal }) {
      calls.push(args)
      const isReverse = args.includes('--reverse')
      for (const each of isReverse ? lines.toReversed() : lines) onLine(each, 'stdout')
      if (!isReverse) await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
      return { exitCode: 0, signal: undefined, tail: '' }
    },
  }
  const logs = createLogs({
    streamer,
    hide: () => (text) => text.replaceAll(hidden, '********'),
    clusterSince: () => clusterSince,
    steps,
    clock: { now: () => now, monotonic: () => now },
  })
  const ask = { units: parseUnits(undefined), priority: debug, lines: 1_000 }
  const { signal } = new AbortController()
  return {
    ...{ logs, ask, steps, calls },
    read: async (more: Partial<Parameters<typeof logs.read>[0]> = {}) =>
      (await logs.read({ ...ask, ...more }, signal)).entries,
  }
}

const told = (entries: readonly LogEntry[]) =>
  entries.map(({ unit, priority, message }) => [unit, priority, message])

it('entries are those of the units, the newest last, with the priority that their text says', async () => {
  const { read, calls } = start([
    line(9, '{"level":40,"msg":"a wait","err":{"message":"too long"}}', {
      _SYSTEMD_UNIT: 'edgehostd.service',
      PRIORITY: '4',
    }),
    line(8, 'E0131 09:52:00.000001 1 kubelet.go:2] it failed'),
    line(7, 'time=1 level=error msg=broken', { _SYSTEMD_UNIT: 'edgehostd-containerd.service' }),
    line(6, 'oom', { _TRANSPORT: 'kernel', _SYSTEMD_UNIT: '', PRIORITY: '2' }),
    line(5, 'kubelet.service: Failed', {
      _SYSTEMD_UNIT: 'init.scope',
      UNIT: 'kubelet.service',
      PRIORITY: '4',
    }),
    line(4, 'I0131 09:56:00.000001 1 server.go:1] starting'),
    line(3, null),
  ])
  expect(told(await read())).toEqual([
    ['edgehostd', 'warning', 'a wait: too long'],
    ['kubelet', 'err', 'E0131 09:52:00.000001 1 kubelet.go:2] it failed'],
    ['edgehostd-containerd', 'err', 'time=1 level=error msg=broken'],
    ['kernel', 'crit', 'oom'],
    ['kubelet', 'warning', 'kubelet.service: Failed'],
    ['kubelet', 'info', 'I0131 09:56:00.000001 1 server.go:1] starting'],
    ['kubelet', 'info', '(too long to be shown here; journalctl --all shows it)'],
  ])
  expect((await read({ priority: priorities.indexOf('err') })).map(({ priority }) => priority)).toEqual([
    'err',
    'err',
    'crit',
  ])
  expect((await read({ lines: 2 })).map(({ message }) => message.slice(0, 5))).toEqual(['I0131', '(too '])
  await read({ units: ['kernel', 'kubelet'] })
  expect(calls.at(-1)?.slice(-6)).toEqual([
    ...['_TRANSPORT=kernel', '+', '_SYSTEMD_UNIT=kubelet.service', '+', '_PID=1', 'UNIT=kubelet.service'],
  ])
})

it('secrets are masked: shapes, values of the cluster, and private keys that are printed line by line', async () => {
  const { read } = start(
    [
      line(9, 'Y3V0IG9mZiBieSB0aGUgYmVnaW4gb2YgdGhlIHdpbmRvdw=='),
      line(9, '-----END RSA PRIVATE KEY-----'),
      line(8, 'pulling https://anna:hunter2@registry.example/x with token=abcdef123456'),
      line(7, 'the value is correct-horse'),
      line(6, '-----BEGIN PRIVATE KEY-----'),
      line(6, 'another process', { _PID: '8' }),
      line(6, 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7'),
      line(6, '-----END PRIVATE KEY-----'),
      line(5, 'after it'),
    ],
    { hidden: 'correct-horse' },
  )
  expect((await read()).map(({ message }) => message)).toEqual([
    '********',
    '-----END RSA PRIVATE KEY-----',
    'pulling https://anna:********@registry.example/x with token=********',
    'the value is ********',
    '-----BEGIN PRIVATE KEY----- ********',
    'another process',
    '********',
    '********',
    'after it',
  ])
})

it('lines of kubelet and of the runtime of the cluster before the present cluster are left out', async () => {
  const lines = [
    line(9, 'of the last cluster'),
    line(8, 'of the runtime', { _SYSTEMD_UNIT: 'edgehostd-containerd.service' }),
    line(7, 'of the daemon', { _SYSTEMD_UNIT: 'edgehostd.service' }),
    line(1, 'of the cluster'),
  ]
  const { read } = start(lines, { clusterSince: now - 300_000 })
  expect((await read()).map(({ message }) => message)).toEqual(['of the daemon', 'of the cluster'])
})

it('a follower gets the lines of the journal and of the steps as they come, and its end ends all', async () => {
  const { logs, ask, steps } = start([line(1, 'first'), line(0, 'second')])
  const run = join(steps, 'kubeadm-init')
  mkdirSync(run)
  writeFileSync(join(run, 'order.json'), JSON.stringify({ startedAt: now, args: [] }))
  writeFileSync(join(run, 'output'), 'before\n')
  const ended = new AbortController()
  const got: string[] = []
  const following = logs.follow(ask, ({ unit, message }) => got.push(`${unit}: ${message}`), ended.signal)
  await expect
    .poll(() => got)
    .toEqual(expect.arrayContaining(['kubelet: first', 'kubelet: second', 'steps: before']))
  appendFileSync(join(run, 'output'), 'later token=abcdef123456\nhalf')
  await expect.poll(() => got.at(-1)).toBe('steps: later token=********')
  appendFileSync(join(run, 'output'), ' of a line\n')
  await expect.poll(() => got.at(-1)).toBe('steps: half of a line')
  ended.abort()
  await following
})

it('a follower that comes again gets what is after its cursor', async () => {
  const { logs, ask, calls } = start([])
  const ended = new AbortController()
  const following = logs.follow({ ...ask, units: ['kernel'] }, () => undefined, ended.signal, cursor)
  await expect.poll(() => calls.length).toBe(1)
  ended.abort()
  await following
  expect(calls[0]).toContain(`--after-cursor=${cursor}`)
  expect(isCursor(cursor)).toBe(true)
  for (const text of ['', 's=x', `${cursor} --file=/etc/shadow`, '--file=/etc/shadow'])
    expect(isCursor(text), text).toBe(false)
})

it('a fifth follower is refused until one has ended', () => {
  const { logs } = start([])
  const [first] = Array.from({ length: 4 }, () => logs.takePlace())
  expect(() => logs.takePlace()).toThrow('4 clients follow the logs already')
  first?.()
  expect(logs.takePlace()).toBeTypeOf('function')
})

it('units and times are checked, and the refusal names the parameter', () => {
  expect(parseUnits('kubelet,kernel,kubelet')).toEqual(['kubelet', 'kernel'])
  expect(() => parseUnits('ssh')).toThrow(/^unit must be of edgehostd, kubelet/)
  expect(parseSince('15m', now)).toBe(now - 900_000)
  expect(parseSince('-2h', now)).toBe(now - 7_200_000)
  expect(parseSince('2026-01-31T08:00:00Z', now)).toBe(now - 7_200_000)
  for (const text of ['yesterday', '5', '2026-01-31', '15m; id', '2026-99-31T08:00:00Z'])
    expect(() => parseSince(text, now), text).toThrow(/^since must be a time/)
})
