import { describe, expect, it } from 'vitest'
import type { Account } from '../../../src/auth/account.ts'
import { bob } from '../../support/test-account.ts'
import { createTestSessions as setUp } from '../../support/test-sessions.ts'

describe('a role that a renewal took, since the directory was silent', () => {
  const admin: Account = { ...bob, role: 'admin' }
  const unknown: Account = { ...bob, isRoleKnown: false }

  it('is gone from the older access token at once, whether it was looked at before or not', async () => {
    const { create, renew, sessions, start } = await setUp()
    const { access, refresh } = create(admin)
    expect(sessions.authenticate(access)?.role).toBe('admin')
    await renew(refresh, false, unknown)
    for (const each of [sessions, start()]) expect(each.authenticate(access)?.role).toBe('viewer')
  })

  it('and the next one gives back does not come back in a token of before', async () => {
    const { create, renew, sessions } = await setUp()
    const first = create(admin)
    const second = await renew(first.refresh, false, unknown)
    const third = await renew(second.refresh, false, admin)
    const roleOf = ({ access }: { access: string }) => sessions.authenticate(access)?.role
    expect([roleOf(second), roleOf(third)]).toEqual(['viewer', 'admin'])
  })
})
