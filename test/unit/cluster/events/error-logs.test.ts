import { describe, expect, it } from 'vitest'
import { createErrorLogs } from '../../../../src/cluster/events/error-logs.ts'
import { createHideOf } from '../../../../src/definition/slots/secrets.ts'
import { CommandFailed, type CommandResult, type CommandRunner } from '../../../../src/system/runner.ts'

const entry = (cursor: string, seconds: number, fields: Record<string, unknown>) =>
  JSON.stringify({
    ...{ __CURSOR: cursor, __REALTIME_TIMESTAMP: String(1_769_846_400_000_000 + seconds * 1_000_000) },
    ...{ __MONOTONIC_TIMESTAMP: '1', _BOOT_ID: 'b', _HOSTNAME: 'edge-1' },
    ...fields,
  })
const hide = () => createHideOf(['correct horse'])
const now = Date.UTC(2026, 0, 31, 9)
const times = { clock: { now: () => now }, clusterSince: () => 0 }
const kubelet = { _SYSTEMD_UNIT: 'kubelet.service', SYSLOG_IDENTIFIER: 'kubelet' }

/** A runner whose journal has these entries, by priority and by text. */
function runnerOf(byPriority: CommandResult | Error, byText: CommandResult | Error = byPriority) {
  const calls: string[][] = []
  const runner: CommandRunner = {
    run: (_program, args) => {
      calls.push([...args])
      const result = args.some((arg) => arg.startsWith('--grep')) ? byText : byPriority
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result)
    },
  }
  return { runner, calls }
}
const result = (...lines: string[]): CommandResult => ({
  ...{ exitCode: 0, stderr: '', stdout: lines.map((line) => `${line}\n`).join('') },
})

describe('the errors in the journal', () => {
  it('lines of all programs come as one list, the newest first, each once', async () => {
    const own = entry('a', 3, {
      ...{ _SYSTEMD_UNIT: 'edgehostd.service', SYSLOG_IDENTIFIER: 'node' },
      MESSAGE:
        '{"level":50,"time":"2026-01-31T08:00:03.000Z","err":{"type":"Error","message":"no room"},"msg":"a write failed"}',
    })
    const { runner, calls } = runnerOf(
      result(own),
      result(
        entry('c', 5, {
          ...{ UNIT: 'kubelet.service', _SYSTEMD_UNIT: 'init.scope', SYSLOG_IDENTIFIER: 'systemd' },
          MESSAGE: "kubelet.service: Failed with result 'exit-code'.",
        }),
        entry('b', 4, { ...kubelet, MESSAGE: 'E0131 08:00:04.1 12 kubelet.go:2412] "Unhandled Error"' }),
        own,
      ),
    )
    const found = await createErrorLogs({ runner, hide, ...times }).last(10)
    expect(
      found.map(({ involvedObject, source, message }) => [involvedObject.name, source.component, message]),
    ).toEqual([
      ['kubelet.service', 'systemd', "kubelet.service: Failed with result 'exit-code'."],
      ['kubelet.service', 'kubelet', 'E0131 08:00:04.1 12 kubelet.go:2412] "Unhandled Error"'],
      ['edgehostd.service', 'edgehostd', 'a write failed: no room'],
    ])
    expect(found[0]).toMatchObject({
      metadata: { uid: 'c', creationTimestamp: '2026-01-31T08:00:05.000Z' },
      ...{ severity: 'Error', reason: 'LogError', source: { host: 'edge-1' } },
    })
    expect(calls.every((args) => args.includes('--lines=10'))).toBe(true)
  })

  it('lines of the kubelet and the containerd of a deleted cluster, whose sensitive values are not known, are not read', async () => {
    const { runner, calls } = runnerOf(result())
    const sinceOf = (unit: string) =>
      calls
        .filter((args) => args.includes(`--unit=${unit}`))
        .map((args) => args.find((arg) => arg.startsWith('--since')))
    const week = `--since=@${now / 1_000 - 7 * 86_400}`
    const clusterSince = () => now - 60_500
    await createErrorLogs({ runner, hide, ...times, clusterSince }).last(10)
    for (const unit of ['kubelet', 'edgehostd-containerd'])
      expect(sinceOf(unit), unit).toEqual([`--since=@${now / 1_000 - 60}`])
    expect(sinceOf('containerd')).toEqual([week])
    expect(sinceOf('edgehostd')).toEqual([week, week])
    calls.length = 0
    await createErrorLogs({ runner, hide, ...times }).last(10)
    expect(sinceOf('kubelet')).toEqual([week])
  })

  it('no more entries are returned than were asked for', async () => {
    const lines = [1, 2, 3].map((at) => entry(`c${at}`, at, { ...kubelet, MESSAGE: `E0131 ${at}` }))
    const { runner } = runnerOf(result(), result(...lines))
    const found = await createErrorLogs({ runner, hide, ...times }).last(2)
    expect(found.map(({ message }) => message)).toEqual(['E0131 3', 'E0131 2'])
  })

  it('text that looks like a secret, and the sensitive values of the cluster, are masked in lines; bytes, lists and texts that are too long are readable', async () => {
    const { runner } = runnerOf(
      result(),
      result(
        entry('1', 4, { ...kubelet, MESSAGE: 'E0131 pull https://anna:hunter2@registry.example/x failed' }),
        entry('2', 3, { ...kubelet, MESSAGE: [...Buffer.from('E0131 \u001b[31mred')] }),
        entry('3', 2, { ...kubelet, MESSAGE: null }),
        entry('4', 1, { ...kubelet, MESSAGE: ['E0131 one', 'two'] }),
        entry('5', 0, { ...kubelet, MESSAGE: 'E0131 pull registry/correct horse:1 failed' }),
      ),
    )
    const found = await createErrorLogs({ runner, hide, ...times }).last(10)
    expect(found.map(({ message }) => message)).toEqual([
      'E0131 pull https://anna:********@registry.example/x failed',
      'E0131 \u001b[31mred',
      '(too long to be shown here; journalctl --all shows it)',
      'E0131 one two',
      'E0131 pull registry/********:1 failed',
    ])
  })

  it('a journal without an error is empty, though journalctl then fails', async () => {
    const { runner } = runnerOf(result(), { exitCode: 1, stdout: '', stderr: '' })
    expect(await createErrorLogs({ runner, hide, ...times }).last(5)).toEqual([])
  })

  it('a journal that cannot be read is a 503 with the reason', async () => {
    const failing = { exitCode: 1, stdout: '', stderr: 'Compiled without pattern matching support\n' }
    await expect(createErrorLogs({ ...runnerOf(failing), hide, ...times }).last(5)).rejects.toMatchObject({
      ...{ status: 503, message: expect.stringContaining('Compiled without pattern matching') as string },
    })
    const late = new CommandFailed('journalctl', 'timed-out', '10000 ms')
    await expect(createErrorLogs({ ...runnerOf(late), hide, ...times }).last(5)).rejects.toMatchObject({
      status: 503,
    })
  })
})
