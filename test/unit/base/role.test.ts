import { describe, expect, it } from 'vitest'
import { isAtLeast, type Role } from '../../../src/base/role.ts'

const roles: readonly Role[] = ['viewer', 'operator', 'admin']

describe('the order of the roles', () => {
  it.each(
    roles.flatMap((role, rank) => roles.map((needed, least) => [role, needed, rank >= least] as const)),
  )('whether %s is at least %s: %s', (role, needed, expected) =>
    expect(isAtLeast(role, needed)).toBe(expected),
  )
})
