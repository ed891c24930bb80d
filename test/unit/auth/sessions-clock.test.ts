import { describe, expect, it } from 'vitest'
import { createTestSessions as setUp } from '../../support/test-sessions.ts'
import { createTurningClock, dayMs, minuteMs } from '../../support/turning-clock.ts'

const refused = { code: 'Unauthenticated', status: 401 }

describe('a clock that is set back', () => {
  // Ahead of the real clock, with which the library compares the end of a token.
  const ahead = () => createTurningClock(Date.now() + 1_500 * dayMs)

  it('a clock set back by 5 minutes ends no session', async () => {
    const { create, renew, clock, sessions } = await setUp()
    const { access, refresh } = create()
    clock.turn(-5 * minuteMs)
    sessions.expire()
    expect(sessions.authenticate(access)).toBeDefined()
    const pair = await renew(refresh)
    expect(await renew(refresh)).toEqual(pair)
  })

  it('a clock set back by years refuses access tokens, checked before or not', async () => {
    const { create, clock, sessions, start } = await setUp({ clock: ahead() })
    const { access } = create()
    const seen = start()
    for (const each of [sessions, seen]) expect(each.authenticate(access)).toBeDefined()
    const unseen = start()
    clock.turn(-1_400 * dayMs)
    for (const each of [sessions, seen, unseen]) expect(each.authenticate(access)).toBeUndefined()
  })

  it('a clock set back by years ends the sessions, and the log says why', async () => {
    const { create, clock, sessions, reasons } = await setUp({ clock: ahead() })
    create()
    clock.turn(-1_400 * dayMs)
    sessions.expire()
    expect(sessions.list()).toEqual([])
    expect(reasons()).toEqual(['clock set back'])
  })

  it.each(['new', 'old'])(
    'a clock set back by years refuses the %s refresh token, and ends the session',
    async (which) => {
      const { create, renew, clock, sessions, reasons } = await setUp({ clock: ahead() })
      const { refresh } = create()
      const pair = await renew(refresh)
      clock.turn(-1_400 * dayMs)
      await expect(renew(which === 'new' ? pair.refresh : refresh)).rejects.toMatchObject(refused)
      expect(sessions.list()).toEqual([])
      expect(reasons()).toEqual(['clock set back'])
    },
  )
})
