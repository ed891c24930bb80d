import { describe, expect, it } from 'vitest'
import { createPasswordHashes, parseHash } from '../../../src/credentials/password-hash.ts'

const cost = { memory: 64, passes: 1 }
const waiter = { group: 'a', member: 'a' }

describe('a password hash', () => {
  it('has the cost of OWASP, and another salt each time', async () => {
    const { hash, verify } = createPasswordHashes()
    const [one, two] = [await hash('right', waiter), await hash('right', waiter)]
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(one).not.toBe(two)
    expect(await verify('right', one, waiter)).toBe(true)
    expect(await verify('wrong', one, waiter)).toBe(false)
  })

  it('is verified at its own cost, whatever new ones cost', async () => {
    const old = await createPasswordHashes({ cost }).hash('right', waiter)
    expect(
      await createPasswordHashes({ cost: { memory: 128, passes: 2 } }).verify('right', old, waiter),
    ).toBe(true)
  })

  it('of nothing belongs to no password', async () => {
    expect(await createPasswordHashes({ cost }).verify('', '', waiter)).toBe(false)
  })

  it('does not depend on how a keyboard composes a letter', async () => {
    const { hash, verify } = createPasswordHashes({ cost })
    expect(await verify('caf\u0065\u0301', await hash('caf\u00e9', waiter), waiter)).toBe(true)
  })

  it.each([
    '',
    'right',
    '$argon2i$v=19$m=64,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$argon2id$v=19$m=9999999,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
  ])('is not read from %j', (text) => {
    expect(() => parseHash(text)).toThrow('damaged')
  })
})

describe('many passwords at once', () => {
  const alone = 2
  const expensive = { memory: 19_456, passes: 4 }

  it('are checked two at a time; more than may wait are refused with the time to wait', async () => {
    const { hash } = createPasswordHashes({ cost: expensive, atOnce: alone, waiting: 3 })
    const all = Array.from({ length: 7 }, () => hash('x', waiter))
    const ended = await Promise.allSettled(all)
    const refused = ended.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    expect(refused).toHaveLength(2)
    expect(refused[0]!.reason).toMatchObject({ code: 'TooManyPasswords' })
    // The places are free again.
    await Promise.all(Array.from({ length: 5 }, () => hash('x', waiter)))
  })

  it('of one client do not push out those of another', async () => {
    const { hash } = createPasswordHashes({ cost: expensive, atOnce: 1, waiting: 2 })
    const greedy = Array.from({ length: 3 }, () => hash('x', { group: 'g', member: 'g' }))
    const other = hash('y', { group: 'o', member: 'o' })
    const ended = await Promise.allSettled([...greedy, other])
    expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  })
})
