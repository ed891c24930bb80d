import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCtlShell, type CtlShell } from '../../support/ctl-shell.ts'

let shell: CtlShell
beforeAll(async () => {
  shell = await createCtlShell()
})
afterAll(() => shell.stop())

/** What the daemon is asked for by `audit list`. */
async function askedBy(options: string, zone = 'UTC'): Promise<URLSearchParams> {
  shell.asked.length = 0
  const { exitCode, stderr } = await shell.run(`edgehostctl audit list ${options}`, { TZ: zone })
  expect(exitCode, stderr).toBe(0)
  return new URL(shell.asked.at(-1) ?? '', 'http://daemon').searchParams
}

it('--since and --until are sent in the form of the API', async () => {
  const asked = await askedBy('--since "2026-01-02 08:00" --until=2026-01-03', 'Europe/Berlin')
  expect(asked.get('startTime')).toBe('2026-01-02T07:00:00.000Z')
  expect(asked.get('endTime')).toBe('2026-01-02T23:00:00.000Z')
})

it.each(['--since -2h', '--since=-2h', '--since "2 hours ago"'])(
  '%s is two hours before now',
  async (given) => {
    const time = Date.parse((await askedBy(given)).get('startTime') ?? '')
    expect(Math.abs(Date.now() - 7_200_000 - time)).toBeLessThan(60_000)
  },
)

it.each([
  ['--since soon', /^edgehostctl: --since must be a time, for example 2026-01-31, .*; it is soon$/m],
  ['--until=', /^edgehostctl: --until must be a time, .*; it is empty$/m],
  ['--limit -1', /^edgehostctl: --limit must be a whole number, 0 for all items; it is -1$/m],
  ['--since --limit=1', /^edgehostctl: --since needs a value: TIME$/m],
])('%s is a wrong command line', async (options, message) => {
  const ended = await shell.run(`edgehostctl audit list ${options}`)
  expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
  expect(ended.stderr).toMatch(message)
})
