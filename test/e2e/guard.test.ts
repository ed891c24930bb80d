import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recordChildren, type Children } from './host/children.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import type { Reply } from './host/http.ts'

const right = 'right canary 0501'
const wrong = 'wrong canary 0501'
const lockSeconds = 12

let host: Edgehostd
let children: Children

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  // A stack without PAM's own failure delay, and short locks: only the order of events is tested.
  await host.sh('sed -i "s/pam_unix.so nullok/pam_unix.so nullok nodelay/" /etc/pam.d/common-auth')
  await host.write(
    '/etc/edgehostd/config.d/guard.yaml',
    `auth: {refusalDelayMs: 100, guard: {lockMinutes: ${lockSeconds / 60}, userFailuresPerHour: 40}}\n`,
  )
  children = await recordChildren(host)
  for (const name of ['anna', 'berta', 'carla', 'dora', 'emil', 'fritz', 'gerda', 'hans'])
    await host.addUser({ name, password: right })
})
afterAll(() => host.unplug())

/** Fails until the pair is locked, waiting as long as each refusal says. */
async function lockPair(user: string, from: string): Promise<Reply[]> {
  const replies: Reply[] = []
  for (let failures = 0; failures < 5;) {
    const reply = await host.login(user, wrong, { from })
    replies.push(reply)
    if (reply.status === 401) failures += 1
    else if (reply.status === 429) await waitFor(reply)
    else throw new Error(`unexpected: ${reply.status} ${reply.text}${reply.failure}`)
  }
  return replies
}

const retryAfter = (reply: Reply) => Number(reply.headers['retry-after']?.[0])
const waitFor = (reply: Reply) => new Promise((resolve) => setTimeout(resolve, retryAfter(reply) * 1_000))

describe('the pair of a user and an address', () => {
  let address: string
  let replies: Reply[]
  let locked: Reply
  let childrenBefore: number
  let childrenAfter: number

  beforeAll(async () => {
    address = await host.newAddress()
    replies = await lockPair('anna', address)
    childrenBefore = (await children.list()).length
    locked = await host.login('anna', right, { from: address })
    childrenAfter = (await children.list()).length
  })

  it('a pair waits from the third failure on, twice as long each time', () => {
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 429, 401, 429, 401])
    expect(replies.filter(({ status }) => status === 429).map(retryAfter)).toEqual([1, 2])
  })

  it('a pair is locked after the fifth failure, and the refusal names the time', () => {
    expect(locked).toMatchObject({ status: 429, json: { code: 'TooManyAttempts' } })
    expect(retryAfter(locked)).toBeGreaterThan(0)
    expect(retryAfter(locked)).toBeLessThanOrEqual(lockSeconds)
  })

  it('a locked pair starts no child', () => {
    expect(childrenAfter).toBe(childrenBefore)
  })

  it('a lock affects neither the same user at another address nor another user at the same', async () => {
    const locksAgain = await lockPair('berta', address)
    expect(locksAgain.at(-1)!.status).toBe(401)
    const elsewhere = await host.newAddress()
    expect((await host.login('berta', right, { from: address })).status).toBe(429)
    expect((await host.login('berta', right, { from: elsewhere })).status).toBe(200)
    expect((await host.login('carla', right, { from: address })).status).toBe(200)
  })

  it('a locked pair may log in again after the time of the lock', async () => {
    await eventually(
      async () => {
        expect((await host.login('anna', right, { from: address })).status).toBe(200)
      },
      (lockSeconds + 5) * 1_000,
    )
  })

  it('unknown names count like known ones', async () => {
    const from = await host.newAddress()
    const statuses = (await lockPair('no-such-user', from)).map(({ status }) => status)
    expect(statuses).toEqual([401, 401, 401, 429, 401, 429, 401])
    expect((await host.login('no-such-user', wrong, { from })).status).toBe(429)
  })

  it('failures of a password reset without a token count too', async () => {
    const from = await host.newAddress()
    await lockPair('carla', from)
    const reply = await host.http('POST', '/v1/users/default/password/reset', {
      from,
      body: { username: 'carla', oldPassword: right, newPassword: 'renewed canary 0502' },
    })
    expect(reply).toMatchObject({ status: 429, json: { code: 'TooManyAttempts' } })
    expect((await host.login('carla', right, { from: await host.newAddress() })).status).toBe(200)
  })

  it('a success resets the failures of a pair', async () => {
    const from = await host.newAddress()
    const statuses: number[] = []
    for (const password of [wrong, wrong, right, wrong, wrong, right]) {
      statuses.push((await host.login('dora', password, { from })).status)
    }
    expect(statuses).toEqual([401, 401, 200, 401, 401, 200])
  })
})

describe('an address alone', () => {
  /** Another name each time; in groups that do not have to wait for PAM. */
  async function failTwentyTimes(from: string): Promise<void> {
    for (let group = 0; group < 4; group += 1) {
      const names = Array.from({ length: 5 }, (_, index) => `guess-${group}-${index}`)
      const failures = await Promise.all(names.map((name) => host.login(name, wrong, { from })))
      expect(failures.map(({ status }) => status)).toEqual(names.map(() => 401))
    }
  }

  it('an address is locked after twenty failures with different names, and other addresses are not', async () => {
    const from = await host.newAddress()
    await failTwentyTimes(from)
    expect(await host.login('dora', right, { from })).toMatchObject({ status: 429 })
    expect((await host.login('dora', right, { from: await host.newAddress() })).status).toBe(200)
  })

  it('a remote IPv6 /64 counts as one address', async () => {
    const from = await host.newAddress('ipv6')
    const neighbour = from.replace(/::2$/, '::3')
    await host.addAddress(neighbour)
    await failTwentyTimes(from)
    expect((await host.login('dora', right, { from: neighbour })).status).toBe(429)
  })

  it('the address is that of the connection, whatever X-Forwarded-For says', async () => {
    const from = await host.newAddress()
    const statuses: number[] = []
    for (let failures = 0; failures < 4; failures += 1) {
      const headers = { 'X-Forwarded-For': `192.0.2.${failures}`, Forwarded: `for=192.0.2.${failures}` }
      statuses.push((await host.login('dora', wrong, { from, headers })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 429])
  })
})

describe('a user under attack from everywhere', () => {
  it('a user under attack can log in from loopback and from an address of an earlier login, not from a new one', async () => {
    const known = await host.newAddress()
    expect((await host.login('emil', right, { from: known })).status).toBe(200)
    for (let round = 0; round < 7; round += 1) {
      const strangers = await Promise.all(Array.from({ length: 6 }, () => host.newAddress()))
      await Promise.all(strangers.map((from) => host.login('emil', wrong, { from })))
    }
    expect((await host.login('emil', right, { from: await host.newAddress() })).status).toBe(429)
    expect((await host.login('emil', right, { from: known })).status).toBe(200)
    expect((await host.login('emil', right, { from: 'loopback' })).status).toBe(200)
  })
})

describe('neighbours in the /64 of the host', () => {
  let used = 0x1000
  const newNeighbour = async () => {
    used += 1
    const address = `fd77::${used.toString(16)}`
    await host.addAddress(address)
    return address
  }

  it('neighbours in the /64 of the host have locks of their own, and do not lock one another out', async () => {
    const [attacker, neighbour] = [await newNeighbour(), await newNeighbour()]
    for (let group = 0; group < 4; group += 1) {
      const names = Array.from({ length: 5 }, (_, index) => `near-${group}-${index}`)
      const failures = await Promise.all(names.map((name) => host.login(name, wrong, { from: attacker })))
      expect(failures.map(({ status }) => status)).toEqual(names.map(() => 401))
    }
    expect(await host.login('dora', right, { from: attacker })).toMatchObject({ status: 429 })
    expect(await host.login('dora', right, { from: neighbour })).toMatchObject({ status: 200 })
  })

  it('a /64 of the host is locked as a whole for one user, except addresses of earlier logins', async () => {
    const known = await newNeighbour()
    expect((await host.login('fritz', right, { from: known })).status).toBe(200)
    // Eight times the three failures of a pair; then the whole /64 has to wait.
    const strangers = await Promise.all(Array.from({ length: 24 }, newNeighbour))
    for (let begin = 0; begin < strangers.length; begin += 6)
      await Promise.all(strangers.slice(begin, begin + 6).map((from) => host.login('fritz', wrong, { from })))
    const statuses = await Promise.all([
      host.login('fritz', right, { from: await newNeighbour() }),
      host.login('fritz', right, { from: known }),
    ])
    expect(statuses.map(({ status }) => status)).toEqual([429, 200])
  })
})

describe('addresses of the host itself', () => {
  it('all addresses of the host count as one client', async () => {
    const body = JSON.stringify({ username: 'gerda', password: wrong })
    const statuses: string[] = []
    for (const from of ['127.0.0.1', '127.9.8.7', '10.77.0.1', '127.1.2.3']) {
      statuses.push(
        await host.output([
          ...['curl', '--silent', '--insecure', '--interface', from, '--output', '/dev/null'],
          ...['--write-out', '%{http_code}', '--json', body],
          'https://127.0.0.1:5080/v1/users/default/login',
        ]),
      )
    }
    expect(statuses).toEqual(['401', '401', '401', '429'])
  })
})

describe('a lock', () => {
  it('a lock outlives a kill of the daemon right after the refusal', async () => {
    const from = await host.newAddress()
    await lockPair('hans', from)
    const before = await host.mainPid()
    await host.output(['kill', '-KILL', String(before)])
    await eventually(async () => {
      expect(await host.mainPid()).not.toBe(before)
      expect((await host.http('GET', '/v1/ping')).status).toBe(200)
    })
    const reply = await host.login('hans', right, { from })
    expect(reply).toMatchObject({ status: 429, json: { code: 'TooManyAttempts' } })
    expect(retryAfter(reply)).toBeLessThanOrEqual(lockSeconds)
    expect((await host.login('hans', right, { from: await host.newAddress() })).status).toBe(200)
    await eventually(
      async () => {
        expect((await host.login('hans', right, { from })).status).toBe(200)
      },
      (lockSeconds + 5) * 1_000,
    )
  })
})

describe('more logins at once than the host has room for', () => {
  it('logins beyond the cores wait in a short queue; the others are refused at once, without a child', async () => {
    await host.sh('sed -i "1i auth optional pam_exec.so /bin/sleep 2" /etc/pam.d/common-auth')
    await host.configure('slots', 'auth: {pam: {maximumChildren: 3, queueLength: 1}}\n')
    const before = (await children.list()).length
    const addresses = await Promise.all(Array.from({ length: 8 }, () => host.newAddress()))
    const replies = await Promise.all(addresses.map((from) => host.login('dora', right, { from })))
    const served = replies.filter(({ status }) => status === 200)
    const refused = replies.filter(({ status }) => status === 429)
    expect(served.length + refused.length).toBe(8)
    // On two cores two run, one waits; three may sleep at a time.
    expect(served.length).toBeGreaterThanOrEqual(2)
    expect(served.length).toBeLessThanOrEqual(4)
    expect((await children.list()).length - before).toBe(served.length)
    for (const reply of refused) {
      expect(reply).toMatchObject({ json: { code: 'TooManyLogins' } })
      expect(retryAfter(reply)).toBeGreaterThan(0)
      expect(reply.waitedMs).toBeLessThan(1_500)
    }
  })
})
