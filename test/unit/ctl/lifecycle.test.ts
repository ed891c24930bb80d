import { describe, expect, it } from 'vitest'
import { lifecycleHeaders, type Lifecycle } from '../../../src/api/lifecycle.ts'
import { lifecycleNotice } from '../../../src/ctl/run-on-host.ts'

const now = Date.UTC(2026, 5, 1)
const notice = (headers: Readonly<Record<string, string>>, path = '/v1/things?limit=1') =>
  lifecycleNotice({ method: 'GET', path }, headers, now)
const of = (lifecycle: Lifecycle) => notice(lifecycleHeaders(lifecycle))

describe('what a command line says of a part of the API that ends', () => {
  it('is nothing in production', () => {
    expect(of({ phase: 'production' })).toBeUndefined()
  })

  it('names the days and the successor that our own programs send', () => {
    expect(of({ phase: 'deprecated', date: '2026-01-31' })).toBe(
      'edgehostctl: warning: the host says that GET /v1/things is deprecated since 2026-01-31',
    )
    expect(of({ phase: 'sunset', date: '2027-01-31', successor: '/v2/things' })).toBe(
      'edgehostctl: warning: the host says that GET /v1/things will be deprecated on 2027-01-31 and can go away from 2027-01-31 on; see /v2/things',
    )
  })

  it.each([
    [{ sunset: 'Sun, 31 Jan 2027 00:00:00 GMT' }, 'can go away from 2027-01-31 on'],
    [
      { deprecation: '@1769817600', link: '<https://a.example/x>; rel="deprecation"; type="text/html"' },
      'since 2026-01-31; see https://a.example/x',
    ],
    [
      { deprecation: '@1769817600', link: '</a,b>; rel=next, </v2>; rel="x Successor-Version"' },
      'since 2026-01-31; see /v2',
    ],
    // Forms of drafts, and nonsense.
    [{ deprecation: 'true' }, 'GET /v1/things is deprecated'],
    [{ deprecation: '@99999999999999999', sunset: 'never' }, 'is deprecated and can go away soon'],
    [{ deprecation: '@999999999999', link: '<' }, 'is deprecated'],
    [{ deprecation: '@1769817600', link: '</\u001b[31m>; rel=sunset' }, 'see /\\u001b[31m'],
  ])('%j ends with %s', (headers, end) => {
    expect(notice(headers)).toContain(end)
    expect(notice(headers)).not.toContain('\u001b')
  })

  it('contains no token of a path', () => {
    expect(notice({ deprecation: '@0' }, '/v1/auth/refresh/secret')).not.toContain('secret')
  })
})
