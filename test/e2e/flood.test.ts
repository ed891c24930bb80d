import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd, type Session } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

const right = 'right canary 1717'
const typed = 'typed-canary-1718'

let host: Edgehostd
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
})
afterAll(() => host.unplug())

const count = async ({ token }: Session) =>
  Number(
    (await host.http('GET', '/v1/edge-mgmt/edgehosts/current/audits?limit=1', { token })).json.listmeta.count,
  )

describe('a storm of refusals without a session', () => {
  let session: Session
  let before = 0
  let began = 0

  beforeAll(async () => {
    session = await host.openSession('chief', right)
    before = await count(session)
    began = Date.now()
    const guesses = Array.from({ length: 6 }, async () => {
      const from = await host.newAddress()
      for (let each = 0; each < 5; each += 1) {
        await host.login(each % 2 === 0 ? 'chief' : typed, 'wrong', { from })
        await host.http('POST', '/v1/nowhere', { from, body: {} })
      }
    })
    await Promise.all(guesses)
  })

  it('a storm of refusals is ten records and a sum a minute, and a successful login has a record of its own', async () => {
    const minutes = Math.ceil((Date.now() - began) / 60_000)
    const during = await count(session)
    expect(during - before).toBeLessThanOrEqual(11 * minutes)
    const { headers } = await host.login('chief', right, { from: await host.newAddress() })
    const { json } = await host.http(
      'GET',
      `/v1/edge-mgmt/edgehosts/current/audits?filters=metadata.uid=${String(headers.audituid)}`,
      { token: session.token },
    )
    expect(json.items[0].spec).toMatchObject({ outcome: 'success', actor: { uid: 'chief' } })
  })

  it('a storm of refusals is a few lines in the journal, none of them with what was typed', async () => {
    const lines = await host.log()
    const seconds = (Date.now() - began) / 1_000
    const refused = lines.filter(({ msg }) => msg === 'login refused')
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThanOrEqual(10 * Math.ceil(seconds / 60))
    expect(refused.every(({ user }) => user === 'chief' || user === undefined)).toBe(true)
    expect(JSON.stringify(lines)).not.toContain(typed)
    await eventually(async () => {
      const sums = (await host.log()).filter(({ msg }) => msg.includes('more requests without a session'))
      expect(sums.length).toBeGreaterThan(0)
    }, 90_000)
  })

  it('a storm of refusals reaches no limit of journald that would lose a copy of a record', async () => {
    expect(await host.property('LogRateLimitIntervalUSec')).toBe('0')
  })
})

describe('a state folder that was restored', () => {
  const stop = 'systemctl stop edgehostd.socket edgehostd.service;'
  const start = 'systemctl start edgehostd.socket edgehostd.service;'
  const restore = 'rm -rf /var/lib/edgehostd; cp -a /root/backup /var/lib/edgehostd;'
  let ended: Session

  beforeAll(async () => {
    ended = await host.openSession('chief', right)
    await host.sh(`${stop} cp -a /var/lib/edgehostd /root/backup; ${start}`)
    expect((await host.http('POST', '/v1/users/default/logout', { token: ended.token })).status).toBe(200)
    expect(await host.statusOf(ended.token)).toBe(401)
  })

  it('a restored state folder brings back a session that had ended', async () => {
    await host.sh(`${stop} ${restore} ${start}`)
    expect(await host.statusOf(ended.token)).toBe(200)
  })

  it('a restored state folder brings back no session after edgehostctl session revoke-all', async () => {
    await host.sh(`${stop} ${restore}`)
    const revoked = await host.run(['edgehostctl', 'session', 'revoke-all'])
    expect(revoked).toMatchObject({ exitCode: 0, stderr: '' })
    expect(revoked.stdout).toMatch(/every session ends .*\n.*systemctl start edgehostd\.service\n$/)
    await host.sh(start)
    expect(await host.statusOf(ended.token)).toBe(401)
    expect((await host.renew(ended.refreshToken)).status).toBe(401)
    expect(await host.sh('stat -c %a /var/lib/edgehostd/secret')).toBe('600\n')
    const { token } = await host.openSession('chief', right)
    const again = await host.run(['edgehostctl', 'session', 'revoke-all'])
    expect(again.exitCode).toBe(0)
    expect(again.stdout).toContain('systemctl restart edgehostd.service')
    expect(await host.statusOf(token)).toBe(200)
    await host.output(['systemctl', 'restart', 'edgehostd.service'])
    expect(await host.statusOf(token)).toBe(401)
  })

  it('revoke-all is refused to other users, and does not exist over the network', async () => {
    const user = await host.run(['runuser', '-u', 'chief', '--', 'edgehostctl', 'session', 'revoke-all'])
    expect(user).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('sudo edgehostctl') as string })
    const elsewhere = await host.run(['edgehostctl', '--host', 'box', 'session', 'revoke-all'])
    expect(elsewhere).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('ssh root@box') as string,
    })
  })
})
