import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { startDaemonSocket } from '../../support/daemon-socket.ts'

let ctl: Ctl
let daemon: Awaited<ReturnType<typeof startDaemonSocket>>
beforeAll(async () => {
  ctl = createCtl()
  daemon = await startDaemonSocket(socket())
})
afterAll(async () => {
  await daemon.stop()
  rmSync(ctl.home, { recursive: true })
})

const socket = () => join(ctl.home, 'daemon.sock')

/** What the daemon is asked for. */
async function askedBy(args: readonly string[], zone = 'UTC'): Promise<URLSearchParams> {
  daemon.asked.length = 0
  const { exitCode, stderr } = await execa(process.execPath, [ctl.program, '--socket', socket(), ...args], {
    reject: false,
    extendEnv: false,
    env: { HOME: ctl.home, TZ: zone },
    stdin: 'ignore',
  })
  expect(exitCode, stderr).toBe(0)
  return new URL(daemon.asked.at(-1) ?? '', 'http://daemon').searchParams
}

it('--since and --until are sent in the form of the API', async () => {
  const asked = await askedBy(
    ['audit', 'list', '--since', '2026-01-02 08:00', '--until=2026-01-03'],
    'Europe/Berlin',
  )
  expect(asked.get('startTime')).toBe('2026-01-02T07:00:00.000Z')
  expect(asked.get('endTime')).toBe('2026-01-02T23:00:00.000Z')
})

it.each([[['--since', '-2h']], [['--since=-2h']], [['--since', '2 hours ago']]])(
  '%j is two hours before now',
  async (given) => {
    const time = Date.parse((await askedBy(['audit', 'list', ...given])).get('startTime') ?? '')
    expect(Math.abs(Date.now() - 7_200_000 - time)).toBeLessThan(60_000)
  },
)

it.each([
  [
    ['audit', 'list', '--since', 'soon'],
    /^edgehostctl: --since must be a time, for example 2026-01-31, .*; it is soon$/m,
  ],
  [['audit', 'list', '--until='], /^edgehostctl: --until must be a time, .*; it is empty$/m],
  [
    ['audit', 'list', '--limit', '-1'],
    /^edgehostctl: --limit must be a whole number, 0 for all items; it is -1$/m,
  ],
  [['audit', 'list', '--since', '--limit=1'], /^edgehostctl: --since needs a value: TIME$/m],
])('%j is a wrong command line', async (args, message) => {
  const ended = await ctl.run(['--socket', socket(), ...args])
  expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
  expect(ended.stderr).toMatch(message)
})
