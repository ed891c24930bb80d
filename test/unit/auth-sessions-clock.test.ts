import { describe, expect, it } from 'vitest'
import { createTestSessions as setUp } from '../support/test-sessions.ts'
import { createTurningClock, dayMs, minuteMs } from '../support/turning-clock.ts'

const refused = { code: 'Unauthenticated', status: 401 }

describe('a clock that is set back', () => {
  // So that it stays ahead of the real clock, against which the library holds the end of a token.
  const ahead = () => createTurningClock(Date.now() + 1_500 * dayMs)

  it('by 5 minutes logs nobody out', async () => {
    const { create, renew, clock, sessions } = await setUp()
    const { access, refresh } = create()
    clock.turn(-5 * minuteMs)
    sessions.expire()
    expect(sessions.authenticate(access)).toBeDefined()
    const pair = await renew(refresh)
    expect(await renew(refresh)).toEqual(pair)
  })

  it.each([false, true])('by years refuses access tokens, looked at before: %s', async (wasSeen) => {
    const { create, clock, sessions } = await setUp({ clock: ahead() })
    const { access } = create()
    if (wasSeen) expect(sessions.authenticate(access)).toBeDefined()
    clock.turn(-1_400 * dayMs)
    expect(sessions.authenticate(access)).toBeUndefined()
  })

  it('by years ends the sessions, and says why', async () => {
    const { create, clock, sessions, reasons } = await setUp({ clock: ahead() })
    create()
    clock.turn(-1_400 * dayMs)
    sessions.expire()
    expect(sessions.list()).toEqual([])
    expect(reasons()).toEqual(['clock set back'])
  })

  it.each(['new', 'old'])('by years refuses the %s refresh token, and ends the session', async (which) => {
    const { create, renew, clock, sessions, reasons } = await setUp({ clock: ahead() })
    const { refresh } = create()
    const pair = await renew(refresh)
    clock.turn(-1_400 * dayMs)
    await expect(renew(which === 'new' ? pair.refresh : refresh)).rejects.toMatchObject(refused)
    expect(sessions.list()).toEqual([])
    expect(reasons()).toEqual(['clock set back'])
  })
})
