import { describe, expect, it } from 'vitest'
import type { Account } from '../../../src/auth/accounts.ts'
import { bob } from '../../support/test-account.ts'
import { createTestSessions as setUp } from '../../support/test-sessions.ts'

describe('a role that a renewal removed while the directory did not answer', () => {
  const admin: Account = { ...bob, role: 'admin' }
  const unknown: Account = { ...bob, isRoleKnown: false }

  it('a role that a renewal removed is gone from the older access token at once, checked before or not', async () => {
    const { create, renew, sessions, start } = await setUp()
    const { access, refresh } = create(admin)
    expect(sessions.authenticate(access)?.role).toBe('admin')
    await renew(refresh, false, unknown)
    for (const each of [sessions, start()]) expect(each.authenticate(access)?.role).toBe('viewer')
  })

  it('a role that the next renewal gives back does not return to older access tokens', async () => {
    const { create, renew, sessions } = await setUp()
    const first = create(admin)
    const second = await renew(first.refresh, false, unknown)
    const third = await renew(second.refresh, false, admin)
    const roleOf = ({ access }: { access: string }) => sessions.authenticate(access)?.role
    expect([roleOf(second), roleOf(third)]).toEqual(['viewer', 'admin'])
  })
})
