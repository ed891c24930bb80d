import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bob } from '../../support/test-account.ts'
import { createTestSessions as setUp } from '../../support/test-sessions.ts'
import { createTurningClock, dayMs, hourMs, minuteMs } from '../../support/turning-clock.ts'

const refused = { code: 'Unauthenticated', status: 401 }

async function temporaryFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-sessions-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return join(folder, 'edgehostd.db')
}

describe('an access token', () => {
  it('an access token names the user, the role and the session', async () => {
    const { create, sessions } = await setUp()
    const caller = sessions.authenticate(create({ ...bob, role: 'admin' }).access)
    expect(caller).toEqual({ userName: 'bob', role: 'admin', sessionUid: sessions.list()[0]?.uid })
  })

  it('an access token is valid for 15 minutes, checked before or not', async () => {
    const { create, sessions, clock, start } = await setUp({
      clock: createTurningClock(Math.ceil(Date.now() / 1000) * 1000),
    })
    const { access } = create()
    const seen = start()
    expect(seen.authenticate(access)).toBeDefined()
    const unseen = start()
    clock.turn(15 * minuteMs - 1)
    for (const each of [sessions, seen, start()]) expect(each.authenticate(access)).toBeDefined()
    clock.turn(1)
    for (const each of [sessions, seen, unseen]) {
      expect(each.authenticate(access)).toBeUndefined()
      expect(each.authenticate(access)).toBeUndefined()
    }
  })

  it('an access token is refused from the end of its session on, checked before or not', async () => {
    const { create, sessions, start } = await setUp()
    const { access } = create()
    const [seen, unseen] = [start(), start()]
    for (const each of [sessions, seen]) expect(each.authenticate(access)).toBeDefined()
    for (const each of [sessions, seen, unseen]) {
      each.end(each.list(), 'test')
      expect(each.authenticate(access)).toBeUndefined()
    }
  })

  it('the end of a session does not end the other sessions of the user', async () => {
    const { create, sessions } = await setUp()
    const [first, second] = [create(), create()]
    const uid = sessions.authenticate(first.access)?.sessionUid ?? ''
    sessions.end([sessions.find(uid)!], 'test')
    expect(sessions.authenticate(first.access)).toBeUndefined()
    expect(sessions.authenticate(second.access)).toBeDefined()
  })

  it('an access token is not valid after the end of its session', async () => {
    const { create, sessions, clock, renew } = await setUp()
    let pair = create()
    for (let hour = 0; hour < 7 * 24 - 1; hour += 1) {
      clock.turn(hourMs)
      pair = await renew(pair.refresh)
    }
    clock.turn(hourMs - minuteMs)
    const { access } = await renew(pair.refresh)
    clock.turn(minuteMs)
    expect(sessions.authenticate(access)).toBeUndefined()
  })

  it.each(['', 'x', 'a.b', 'a.b.c', '..', ' '])('an access token is not %j', async (token) => {
    const { sessions } = await setUp()
    expect(sessions.authenticate(token)).toBeUndefined()
  })
})

describe('a renewal', () => {
  it('a renewal gives a new pair, and moves the end 2 hours from now', async () => {
    const { create, renew, clock, sessions } = await setUp()
    const pair = create()
    clock.turn(hourMs)
    const renewed = await renew(pair.refresh)
    expect(renewed.access).not.toBe(pair.access)
    expect(renewed.refresh).not.toBe(pair.refresh)
    expect(sessions.list()[0]?.expiresAt).toBe(clock.now() + 2 * hourMs)
    expect(sessions.authenticate(renewed.access)).toBeDefined()
  })

  it('a renewal is refused after 2 hours', async () => {
    const { create, renew, clock, sessions } = await setUp()
    const { refresh } = create()
    clock.turn(2 * hourMs)
    await expect(renew(refresh)).rejects.toMatchObject(refused)
    expect(sessions.list()).toEqual([])
  })

  it.each([
    ['of the login', true, false],
    ['of the renewal', false, true],
  ])('a renewal moves the end 24 hours with extendedSession %s', async (_what, atLogin, atRenewal) => {
    const { create, renew, clock } = await setUp()
    let { refresh } = create(bob, atLogin)
    if (atRenewal) ({ refresh } = await renew(refresh, true))
    clock.turn(24 * hourMs - 1)
    await expect(renew(refresh)).resolves.toBeDefined()
  })

  it('a renewal never moves the end beyond 7 days from the login', async () => {
    const { create, renew, clock, sessions } = await setUp()
    const loggedInAt = clock.now()
    let { refresh } = create(bob, true)
    for (let day = 0; day < 7; day += 1) {
      clock.turn(dayMs - minuteMs)
      ;({ refresh } = await renew(refresh, true))
    }
    expect(sessions.list()[0]?.expiresAt).toBe(loggedInAt + 7 * dayMs)
    clock.turn(7 * minuteMs)
    await expect(renew(refresh, true)).rejects.toMatchObject(refused)
  })

  it('a renewal gives the role that the account has now', async () => {
    const { create, renew, sessions } = await setUp()
    const { refresh } = create()
    const { access } = await renew(refresh, false, { ...bob, role: 'admin' })
    expect(sessions.authenticate(access)?.role).toBe('admin')
  })

  it('a renewal is refused when the account must not continue', async () => {
    const { create, sessions } = await setUp()
    const { refresh } = create()
    const renewal = sessions.renew(refresh, false, () => Promise.resolve(undefined))
    await expect(renewal).rejects.toMatchObject(refused)
  })

  it('a renewal is refused when the session ended during the check of the account', async () => {
    const { create, sessions } = await setUp()
    const { refresh } = create()
    const renewal = sessions.renew(refresh, false, () => {
      sessions.end(sessions.list(), 'logout')
      return Promise.resolve(bob)
    })
    await expect(renewal).rejects.toMatchObject(refused)
    expect(sessions.list()).toEqual([])
  })

  it('a renewal leaves the session unchanged when the account cannot be checked', async () => {
    const { create, sessions, renew } = await setUp()
    const { refresh } = create()
    await expect(sessions.renew(refresh, false, () => Promise.reject(new Error('down')))).rejects.toThrow(
      'down',
    )
    await expect(renew(refresh)).resolves.toBeDefined()
  })
})

describe('an old refresh token', () => {
  it('an old refresh token gives the identical pair for 30 seconds, as often as it is sent', async () => {
    const { create, renew, clock } = await setUp()
    const { refresh } = create()
    const pair = await renew(refresh)
    expect(await renew(refresh)).toEqual(pair)
    clock.turn(30_000)
    expect(await renew(refresh)).toEqual(pair)
  })

  it('an old refresh token ends the session when it is sent later', async () => {
    const { create, renew, clock, sessions, reasons } = await setUp()
    const { refresh } = create()
    const pair = await renew(refresh)
    clock.turn(30_001)
    await expect(renew(refresh)).rejects.toMatchObject(refused)
    expect(sessions.authenticate(pair.access)).toBeUndefined()
    await expect(renew(pair.refresh)).rejects.toMatchObject(refused)
    expect(reasons()).toContain('refresh token reused')
  })

  it('a refresh token ends the session at once when it is two or more renewals old', async () => {
    const { create, renew, sessions } = await setUp()
    const { refresh } = create()
    let newest = refresh
    for (let count = 0; count < 10; count += 1) newest = (await renew(newest)).refresh
    await expect(renew(refresh)).rejects.toMatchObject(refused)
    expect(sessions.list()).toEqual([])
  })

  it('an old refresh token of another session ends only that one', async () => {
    const { create, renew, clock, sessions } = await setUp()
    const stolen = create()
    const other = create()
    await renew(stolen.refresh)
    clock.turn(minuteMs)
    await expect(renew(stolen.refresh)).rejects.toMatchObject(refused)
    expect(sessions.authenticate(other.access)).toBeDefined()
  })

  it('an old refresh token cannot revive an ended session', async () => {
    const { create, renew, sessions } = await setUp()
    const { refresh } = create()
    const pair = await renew(refresh)
    sessions.end(sessions.list(), 'logout')
    for (const token of [refresh, pair.refresh]) await expect(renew(token)).rejects.toMatchObject(refused)
  })
})

describe('concurrent renewals', () => {
  it('concurrent renewals with the same token get the same pair, and count once', async () => {
    const { create, renew, sessions } = await setUp()
    const { refresh } = create()
    const pairs = await Promise.all(Array.from({ length: 20 }, () => renew(refresh)))
    expect(new Set(pairs.map((pair) => JSON.stringify(pair))).size).toBe(1)
    expect(sessions.list()[0]?.generation).toBe(1)
    await expect(renew(pairs[0]!.refresh)).resolves.toBeDefined()
  })
})

describe('sessions', () => {
  it('a user has at most 500 sessions: the one not renewed for longest is ended', async () => {
    const { create, sessions, clock } = await setUp()
    const first = create()
    const other = create({ ...bob, name: 'alice' })
    for (let count = 0; count < 500; count += 1) {
      clock.turn(1)
      create()
    }
    expect(sessions.list()).toHaveLength(501)
    expect(sessions.authenticate(first.access)).toBeUndefined()
    expect(sessions.authenticate(other.access)).toBeDefined()
  })

  it('expired sessions are removed', async () => {
    const { create, sessions, clock } = await setUp()
    create()
    create(bob, true)
    clock.turn(2 * hourMs)
    sessions.expire()
    expect(sessions.list()).toHaveLength(1)
  })

  it('only known sessions are ended: a repetition changes nothing', async () => {
    const { create, sessions, reasons } = await setUp()
    create()
    const [session] = sessions.list()
    sessions.end([session!], 'logout')
    sessions.end([session!], 'again')
    expect(reasons()).toEqual(['logout'])
  })

  it('an ended session that could not be removed from the disk is removed by the next check', async () => {
    const { create, sessions, database, start } = await setUp()
    create()
    database.sql.exec('PRAGMA query_only = ON')
    sessions.end(sessions.list(), 'test')
    expect(start().list()).toHaveLength(1)
    database.sql.exec('PRAGMA query_only = OFF')
    sessions.expire()
    expect(start().list()).toHaveLength(0)
  })
})

describe('an end on a disk that cannot be written', () => {
  it('is marked in place, and the next start ends all sessions; a removal takes the mark away', async () => {
    const markFile = `${await temporaryFile()}-mark`
    const { create, sessions, database, start } = await setUp({ markFile })
    create()
    create()
    database.sql.exec('PRAGMA query_only = ON')
    const [first] = sessions.list()
    expect(sessions.end([first!], 'logout')).toBe(true)
    expect(sessions.areEndsStored()).toBe(false)
    // Also where the disk is still full then.
    const next = start()
    expect([next.list(), next.areEndsStored()]).toEqual([[], false])
    database.sql.exec('PRAGMA query_only = OFF')
    next.expire()
    expect(next.areEndsStored()).toBe(true)
    create()
    expect(start().list()).toHaveLength(1)
  })

  it('that was marked with the last session leaves none for a later start', async () => {
    const markFile = `${await temporaryFile()}-mark`
    const { create, sessions, database, start } = await setUp({ markFile })
    create()
    database.sql.exec('PRAGMA query_only = ON')
    sessions.end(sessions.list(), 'logout')
    database.sql.exec('PRAGMA query_only = OFF; DELETE FROM session')
    expect(start().areEndsStored()).toBe(true)
    create()
    expect(start().list()).toHaveLength(1)
  })

  it('is told where not even the mark can be written', async () => {
    const markFile = `${await temporaryFile()}-missing/mark`
    const { create, sessions, database } = await setUp({ markFile })
    create()
    database.sql.exec('PRAGMA query_only = ON')
    expect(sessions.end(sessions.list(), 'logout')).toBe(false)
    expect(sessions.list()).toEqual([])
  })
})

describe('after a restart', () => {
  it('sessions continue after a restart, with their access and refresh tokens, old ones included', async () => {
    const file = await temporaryFile()
    const before = await setUp({ file })
    const { refresh } = before.create()
    const pair = await before.renew(refresh)
    const [record] = before.sessions.list()
    before.stop()
    const after = await setUp({ file, clock: before.clock })
    expect(after.sessions.list()).toEqual([record])
    expect(after.sessions.authenticate(pair.access)).toEqual(before.sessions.authenticate(pair.access))
    expect(await after.renew(refresh)).toEqual(pair)
    await expect(after.renew(pair.refresh)).resolves.toBeDefined()
  })

  it('ended sessions stay ended after a restart', async () => {
    const file = await temporaryFile()
    const before = await setUp({ file })
    const pair = before.create()
    before.sessions.end(before.sessions.list(), 'logout')
    before.stop()
    const after = await setUp({ file, clock: before.clock })
    expect(after.sessions.authenticate(pair.access)).toBeUndefined()
    await expect(after.renew(pair.refresh)).rejects.toMatchObject(refused)
  })

  it('a stolen token is still recognised after a restart', async () => {
    const file = await temporaryFile()
    const before = await setUp({ file })
    const { refresh } = before.create()
    await before.renew((await before.renew(refresh)).refresh)
    before.stop()
    const after = await setUp({ file, clock: before.clock })
    await expect(after.renew(refresh)).rejects.toMatchObject(refused)
    expect(after.sessions.list()).toEqual([])
  })
})

it('the database contains no token', async () => {
  const { create, renew, database } = await setUp()
  const first = create()
  const second = await renew(first.refresh)
  const kept = JSON.stringify(database.sql.prepare('SELECT * FROM session').all())
  for (const token of [first, second].flatMap(({ access, refresh }) => [access, refresh])) {
    expect(kept).not.toContain(token)
    for (const part of token.split('.').filter((each) => each.length > 40)) expect(kept).not.toContain(part)
  }
})
