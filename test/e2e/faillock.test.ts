import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import type { Reply } from './host/http.ts'

const right = 'right canary 1201'
const wrong = 'wrong canary 1201'
const deny = 3

let host: Edgehostd

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  for (const name of ['anna', 'berta', 'carla']) await host.addUser({ name, password: right })
  // The second example of pam_faillock(8), in Debian's stack: a right password jumps over authfail and pam_deny.
  await host.sh(`
    sed -i -e '/pam_unix.so/{s/success=1/success=2/;i auth required pam_faillock.so preauth
      a auth [default=die] pam_faillock.so authfail
    }' /etc/pam.d/common-auth
    sed -i '/pam_unix.so/i account required pam_faillock.so' /etc/pam.d/common-account
  `)
  await host.write('/etc/security/faillock.conf', `deny = ${deny}\nunlock_time = 86400\n`)
})
afterAll(() => host.unplug())

/** Addresses of the failures that faillock counts for a user, oldest first. */
async function sources(user: string): Promise<string[]> {
  const [title, , ...lines] = (await host.output(['faillock', '--user', user])).trimEnd().split('\n')
  expect(title).toBe(`${user}:`)
  return lines.map((line) => {
    const [, , type, source, valid] = line.split(/\s+/)
    expect([type, valid], line).toEqual(['RHOST', 'V'])
    return source!
  })
}

/** Each from an address of its own: the daemon's own guard sees a first failure each time. */
async function fail(user: string, times: number): Promise<{ addresses: string[]; replies: Reply[] }> {
  const addresses: string[] = []
  const replies: Reply[] = []
  while (replies.length < times) {
    const from = await host.newAddress()
    addresses.push(from)
    replies.push(await host.login(user, wrong, { from }))
  }
  return { addresses, replies }
}

const loginFromElsewhere = async (user: string, password: string) =>
  host.login(user, password, { from: await host.newAddress() })

/** What a client could tell two refusals apart by, but for time. */
const visible = ({ status, headers, json }: Reply) => ({
  status,
  fields: Object.keys(headers).sort(),
  body: { ...json, ref: typeof json?.ref },
})

// The tests run in order: each one depends on the one before.
describe("an account under the host's pam_faillock", () => {
  let refused: Reply

  it('faillock counts each failure at the API, with the address of the client', async () => {
    const { addresses, replies } = await fail('anna', deny)
    refused = replies[0]!
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401])
    expect(await sources('anna')).toEqual(addresses)
  })

  it.each(['required', 'requisite'])(
    'a locked account gets the same refusal for the right password, in text and time (preauth %s)',
    async (control) => {
      await host.sh('sed -i -E "s/^(auth) \\S+ (.*preauth)/\\1 $1 \\2/" /etc/pam.d/common-auth', control)
      expect(await host.read('/etc/pam.d/common-auth')).toContain(`auth ${control} pam_faillock.so preauth`)
      const reply = await loginFromElsewhere('anna', right)
      expect(reply).toMatchObject({ status: 401, json: { code: 'InvalidCredentials' } })
      expect(visible(reply)).toEqual(visible(refused))
      // As in login.test.ts: the delay, and not twice.
      expect(reply.waitedMs).toBeGreaterThanOrEqual(2_900)
      expect(reply.waitedMs).toBeLessThan(2 * 2_900)
    },
  )

  it('the journal names the lock in the text of faillock', async () => {
    expect((await host.journal('edgehostd')).map(({ message }) => message)).toContain(
      'pam_faillock(edgehostd:auth): Consecutive login failures for user anna account temporarily locked',
    )
  })

  it('a lock of faillock does not affect other accounts', async () => {
    expect((await loginFromElsewhere('berta', right)).status).toBe(200)
  })

  it('faillock --reset unlocks the account', async () => {
    await host.output(['faillock', '--user', 'anna', '--reset'])
    expect((await loginFromElsewhere('anna', right)).status).toBe(200)
  })
})

describe('a success at the API', () => {
  it('a successful login resets the failures of faillock', async () => {
    const { addresses } = await fail('berta', 1)
    expect(await sources('berta')).toEqual(addresses)
    expect((await loginFromElsewhere('berta', right)).status).toBe(200)
    expect(await sources('berta')).toEqual([])
  })

  it('a successful login resets failures at other services too, and faillock counts them together', async () => {
    // Outside the sandbox, with all rights: the file of the counts then belongs to the account.
    const elsewhere = '/usr/lib/edgehostd/pamtester -I rhost=192.0.2.7 login carla authenticate'
    expect((await host.run(['sh', '-c', elsewhere], { input: `${wrong}\n` })).exitCode).not.toBe(0)
    expect((await host.sh('stat -c %U /run/faillock/carla')).trim()).toBe('carla')
    const { addresses } = await fail('carla', 1)
    expect(await sources('carla')).toEqual(['192.0.2.7', ...addresses])
    expect((await loginFromElsewhere('carla', right)).status).toBe(200)
    expect(await sources('carla')).toEqual([])
  })
})

describe('a unit whose /run is read-only', () => {
  it('faillock counts and resets failures in a unit whose /run is read-only', async () => {
    // systemd 252 leaves /run writable, whatever ProtectSystem=strict says, in a unit with ProtectProc= or
    // ProtectKernelTunables=. Here it is as the unit means it.
    await host.configureUnit('run', '[Service]\nReadOnlyPaths=/run\n')
    const touch = ['nsenter', '-m', '-t', String(await host.mainPid()), 'touch', '/run/canary']
    expect((await host.run(touch)).stderr).toContain('Read-only file system')
    const { addresses } = await fail('anna', 1)
    expect(await sources('anna')).toEqual(addresses)
    expect((await loginFromElsewhere('anna', right)).status).toBe(200)
    expect(await sources('anna')).toEqual([])
  })
})
