import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd, type Session } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { findLeaks } from './host/leaks.ts'

const right = 'right canary 0601'
const wrong = 'wrong canary 0601'
const replaySeconds = 2

let host: Edgehostd

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.configure('sessions', `auth: {tokens: {replaySeconds: ${replaySeconds}}}\n`)
  await host.sh(
    'for group in wheel edgehostd-admin; do getent group $group > /dev/null || groupadd $group; done',
  )
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'viewer', password: right })
})
afterAll(() => host.unplug())

const current = (token: string) => host.http('GET', '/v1/users/current', { token })

interface SessionItem {
  readonly uid: string
  readonly userName: string
  readonly isCurrent: boolean
}

async function listSessions(token: string): Promise<SessionItem[]> {
  const { json } = await host.http('GET', '/v1/users/sessions', { token })
  return json.items as SessionItem[]
}

const uidOf = async ({ token }: Session) =>
  (await listSessions(token)).find(({ isCurrent }) => isCurrent)!.uid
const usersSeenBy = async ({ token }: Session) =>
  new Set((await listSessions(token)).map(({ userName }) => userName))

/** Renews a session, which has to succeed. */
async function renewed(refreshToken: string): Promise<Session> {
  const { status, json } = await host.renew(refreshToken)
  expect(status).toBe(200)
  return { token: json.Authorization as string, refreshToken: json.RefreshToken as string }
}

describe('a role', () => {
  it.each(['sudo', 'wheel', 'edgehostd-admin'])('a member of %s is an administrator', async (group) => {
    await host.addUser({ name: `in-${group}`, password: right, groups: [group] })
    const { token } = await host.openSession(`in-${group}`, right)
    expect(await current(token)).toMatchObject({
      status: 200,
      json: { userName: `in-${group}`, role: 'admin' },
    })
  })

  it('uid 0 is an administrator', async () => {
    await host.output(['chpasswd'], { input: `root:${right}\n` })
    const { token } = await host.openSession('root', right)
    expect(await current(token)).toMatchObject({ json: { userName: 'root', role: 'admin' } })
  })

  it('every other user is a viewer', async () => {
    const { token } = await host.openSession('viewer', right)
    expect(await current(token)).toMatchObject({ json: { userName: 'viewer', role: 'viewer' } })
  })

  it('an administrator can see and end the sessions of others, a viewer only its own', async () => {
    const chief = await host.openSession('chief', right)
    const viewer = await host.openSession('viewer', right)
    expect(await usersSeenBy(viewer)).toEqual(new Set(['viewer']))
    expect((await usersSeenBy(chief)).size).toBeGreaterThan(1)

    const end = (token: string, uid: string) => host.http('DELETE', `/v1/users/sessions/${uid}`, { token })
    const refusal = await end(viewer.token, await uidOf(chief))
    expect([403, 404]).toContain(refusal.status)
    expect(await host.statusOf(chief.token)).toBe(200)
    expect((await end(chief.token, await uidOf(viewer))).status).toBe(204)
    expect(await host.statusOf(viewer.token)).toBe(401)
  })
})

describe('a renewal', () => {
  it('a renewal gives a new pair that works', async () => {
    const { token, refreshToken } = await host.openSession('viewer', right)
    const next = await renewed(refreshToken)
    expect(next.refreshToken).not.toBe(refreshToken)
    expect(next.token).not.toBe(token)
    expect(await host.statusOf(next.token)).toBe(200)
  })

  it('a lost renewal is repeated with the same pair', async () => {
    const { refreshToken } = await host.openSession('viewer', right)
    const first = await renewed(refreshToken)
    expect(await renewed(refreshToken)).toEqual(first)
  })

  it('a renewal with an old token, later, ends the session of thief and owner', async () => {
    const { refreshToken } = await host.openSession('viewer', right)
    const next = await renewed(refreshToken)
    await new Promise((resolve) => setTimeout(resolve, replaySeconds * 1_000 + 100))
    expect(await host.statusOf(next.token)).toBe(200)
    expect((await host.renew(refreshToken)).status).toBe(401)
    expect(await host.statusOf(next.token)).toBe(401)
    expect((await host.renew(next.refreshToken)).status).toBe(401)
  })

  it('a renewal with what is not a refresh token is refused', async () => {
    const { token } = await host.openSession('viewer', right)
    for (const refreshToken of ['x', token, 'a.b', '..', 'x'.repeat(10_000)]) {
      expect((await host.renew(refreshToken)).status).toBe(401)
    }
  })

  it('a renewal by cookie has to prove its origin', async () => {
    const { refreshToken } = await host.openSession('viewer', right)
    const renewal = (headers: Record<string, string>) =>
      host.http('POST', '/v1/users/default/token/renewal', {
        headers: { Cookie: `RefreshToken=${refreshToken}`, ...headers },
      })
    expect((await renewal({})).status).toBe(403)
    expect((await renewal({ Origin: 'https://elsewhere.example' })).status).toBe(403)
    expect((await renewal({ Origin: 'https://10.77.0.1:5080' })).status).toBe(200)
  })
})

describe('a cookie', () => {
  it('a cookie can read as the header can, and change only from the same origin', async () => {
    const { token } = await host.openSession('viewer', right)
    const headers = { Cookie: `Authorization=${token}` }
    const logout = (more: Record<string, string>) =>
      host.http('POST', '/v1/users/default/logout', { headers: { ...headers, ...more } })
    expect((await host.http('GET', '/v1/users/current', { headers })).status).toBe(200)
    expect(await logout({})).toMatchObject({ status: 403, json: { code: 'CrossOrigin' } })
    expect((await logout({ Origin: 'null' })).status).toBe(403)
    expect((await logout({ 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403)
    expect((await logout({ Origin: 'https://10.77.0.1:5080' })).status).toBeLessThan(300)
  })
})

describe('a logout', () => {
  it('a logout ends this session at once, and no other', async () => {
    const ended = await host.openSession('viewer', right)
    const other = await host.openSession('viewer', right)
    expect((await host.http('POST', '/v1/users/default/logout', { token: ended.token })).status).toBeLessThan(
      300,
    )
    expect(await host.statusOf(ended.token)).toBe(401)
    expect((await host.renew(ended.refreshToken)).status).toBe(401)
    expect(await host.statusOf(other.token)).toBe(200)
  })
})

describe('a password change', () => {
  const reset = (token: string, oldPassword: string, newPassword: string) =>
    host.http('POST', '/v1/users/default/password/reset', { token, body: { oldPassword, newPassword } })

  it('a password change with a wrong old password is refused', async () => {
    await host.addUser({ name: 'mistaken', password: right })
    const { token } = await host.openSession('mistaken', right)
    const reply = await reset(token, wrong, 'renewed canary 0602')
    expect(reply).toMatchObject({ status: 400, json: { code: 'OldPasswordWrong' } })
    expect((await host.login('mistaken', right)).status).toBe(200)
  })

  it.each([
    ['too short', 'ab', /too short|longer/i],
    ['the same again', right, /not been changed|unchanged|same/i],
  ])('a new password that is %s is refused with the text of PAM', async (_, newPassword, words) => {
    const { token } = await host.openSession('viewer', right)
    const reply = await reset(token, right, newPassword)
    expect(reply).toMatchObject({ status: 400, json: { code: 'PasswordRefused' } })
    expect(reply.json.message).toMatch(words)
    expect(await host.statusOf(token)).toBe(200)
    expect((await host.login('viewer', right)).status).toBe(200)
  })

  it('a password change before the minimum age of chage -m is refused with the text of PAM', async () => {
    await host.addUser({ name: 'hasty', password: right })
    await host.output(['chage', '-m', '7', 'hasty'])
    const { token } = await host.openSession('hasty', right)
    const reply = await reset(token, right, 'renewed canary 0603')
    expect(reply).toMatchObject({ status: 400, json: { code: 'PasswordRefused' } })
    expect(reply.json.message).toMatch(/wait longer/i)
  })

  it.each(['a\nb canary 0604', 'c\0d canary 0604', 'e'.repeat(512)])(
    'a new password that PAM cannot be given is refused',
    async (odd) => {
      const { token } = await host.openSession('viewer', right)
      expect(await reset(token, right, odd)).toMatchObject({ status: 400, json: { code: 'BadRequest' } })
    },
  )

  it('a password change ends every session of the user, and only the new password is accepted', async () => {
    await host.addUser({ name: 'tidy', password: right })
    const renewed = 'renewed canary $HOME %n 0605'
    const here = await host.openSession('tidy', right)
    const there = await host.openSession('tidy', right, { from: await host.newAddress() })
    const bystander = await host.openSession('viewer', right)
    expect(await reset(here.token, right, renewed)).toMatchObject({ status: 204 })
    expect(await host.statusOf(here.token)).toBe(401)
    expect(await host.statusOf(there.token)).toBe(401)
    expect(await host.statusOf(bystander.token)).toBe(200)
    expect((await host.login('tidy', renewed)).status).toBe(200)
    expect((await host.login('tidy', right)).status).toBe(401)
  })
})

describe('a session', () => {
  it.each([
    ['passwd -l', 'passwd -l "$1"'],
    ['chage -E 0', 'chage -E 0 "$1"'],
    ['a password that was not changed in time', 'chage -M 1 -I 0 -d 2020-01-01 "$1"'],
    ['usermod -s nologin', 'usermod -s /usr/sbin/nologin "$1"'],
    ['userdel', 'userdel "$1"'],
    ['gpasswd -d from the administrators', 'gpasswd -d "$1" sudo'],
  ])('a session ends within 2 s of %s', async (_, command) => {
    const name = `gone${Math.random().toString(36).slice(2, 8)}`
    await host.addUser({ name, password: right, groups: ['sudo'] })
    const { token, refreshToken } = await host.openSession(name, right)
    expect(await host.statusOf(token)).toBe(200)
    await host.sh(command, name)
    const changedAt = performance.now()
    await eventually(async () => {
      expect(await host.statusOf(token)).toBe(401)
    }, 4_000)
    expect(performance.now() - changedAt).toBeLessThan(2_000)
    expect((await host.renew(refreshToken)).status).toBe(401)
  })

  it('a session continues when another account changes', async () => {
    const { token } = await host.openSession('viewer', right)
    await host.addUser({ name: 'newcomer', password: right })
    await host.sh('passwd -l newcomer')
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await host.statusOf(token)).toBe(200)
  })

  it('a session continues over a restart, and an ended one stays ended', async () => {
    const alive = await host.openSession('viewer', right)
    const loggedOut = await host.openSession('viewer', right)
    await host.http('POST', '/v1/users/default/logout', { token: loggedOut.token })
    await host.output(['systemctl', 'restart', 'edgehostd'])
    expect(await host.statusOf(alive.token)).toBe(200)
    expect((await host.renew(alive.refreshToken)).status).toBe(200)
    expect(await host.statusOf(loggedOut.token)).toBe(401)
    expect((await host.renew(loggedOut.refreshToken)).status).toBe(401)
  })

  it('a session of an account that was locked while the daemon was down has ended', async () => {
    await host.addUser({ name: 'meanwhile', password: right })
    const { token, refreshToken } = await host.openSession('meanwhile', right)
    await host.sh(
      'systemctl stop edgehostd.service edgehostd.socket; passwd -l meanwhile; systemctl start edgehostd.socket',
    )
    expect(await host.statusOf(token)).toBe(401)
    expect((await host.renew(refreshToken)).status).toBe(401)
  })

  it('sessions leave no password and no token in journal, state or any process', async () => {
    expect(await findLeaks(host)).toEqual([])
  })
})
