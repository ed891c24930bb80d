import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ratioFigure, type Measure } from './figure.ts'
import { spread } from './numbers.ts'
import { logIn, type Rig } from './rig.ts'

/** A login with the right password on an open connection, against the same pamtester started by Node alone. */
export const measureLogin: Measure = async (rig) => {
  const pairs = rig.isQuick ? 7 : 41
  const daemon = await rig.startDaemon()
  const client = rig.client(daemon)
  const own: number[] = []
  const base: number[] = []
  const overHttps = async () => void own.push(await timed(() => logIn(client, rig.accounts.good)))
  const alone = async () => void base.push(await timed(() => runPamtester(rig)))
  // Both paths are warm before the first pair counts.
  for (let pair = -3; pair < pairs; pair += 1) {
    if (pair === 0) for (const each of [own, base]) each.length = 0
    if (pair % 10 === 0) rig.say(`login: pair ${pair + 1} of ${pairs}`)
    const both = [alone, overHttps]
    for (const each of pair % 2 === 0 ? both : both.reverse()) await each()
  }
  client.close()
  await daemon.stop()
  return [
    ratioFigure('login ÷ pamtester alone', own, base, {
      target: '≤ 1.15',
      note: `${pairs} pairs, keep-alive`,
    }),
    { name: 'login', value: spread(own), unit: 'ms' },
    { name: 'login, pamtester alone', value: spread(base), unit: 'ms' },
  ]
}

async function runPamtester({ pamtester, accounts }: Rig): Promise<void> {
  const { userName, password } = accounts.good
  const operations = ['authenticate(PAM_DISALLOW_NULL_AUTHTOK)', 'acct_mgmt']
  const args = ['-I', 'rhost=127.0.0.1', accounts.service, userName, ...operations]
  const child = spawn(pamtester, args, {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    cwd: '/',
  })
  child.stdout.resume()
  child.stderr.resume()
  child.stdin.end(`${password}\n`)
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`pamtester ends with ${code ?? 'a signal'}`)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}
