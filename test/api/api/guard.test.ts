import { afterEach, describe, expect, it } from 'vitest'
import type { Access, Authorize, Caller } from '../../../src/api/access.ts'
import { authorizeByRole, mayUse } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import type { Role } from '../../../src/base/role.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { generalErrors } from '../../../src/errors/codes.ts'
import { captureLog } from '../../support/https-server.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const callers: Readonly<Record<string, Caller>> = {
  ...Object.fromEntries(
    (['viewer', 'operator', 'admin'] as const).map((role) => [
      role,
      { userName: role, role, sessionUid: 's', uid: role, kind: 'user' } satisfies Caller,
    ]),
  ),
  key: { userName: 'viewer', role: 'viewer', sessionUid: undefined, uid: 'viewer', kind: 'key' },
  host: { userName: 'h', role: 'viewer', sessionUid: undefined, uid: 'h', kind: 'host' },
}

function callerNamed(who: string): Caller {
  const caller = callers[who]
  if (!caller) throw new Error(`there is no caller ${who}`)
  return caller
}

/** A server whose callers name themselves in the header `who`, with a route for each access. */
function create(authorize?: Authorize) {
  const { app } = createServer({
    ...{ log: captureLog().log, bodyLimitBytes: 1_000, mode: 'airgap', authorize },
    identify: ({ headers }) => callers[String(headers.who)],
    onAuthenticated: () => undefined,
  })
  for (const access of ['open', 'viewer', 'operator', 'admin', 'host'] as const)
    app.route({
      ...{ method: ['GET', 'POST'], url: `/v1/${access}` },
      config: { access, audit: false, ...(access === 'open' ? { optionalSession: true } : {}) },
      handler: async ({ caller }) => caller ?? {},
    })
  closing.push(() => app.close())
  return (access: string, who?: string, method: 'GET' | 'POST' = 'GET') =>
    app.inject({ method, url: `/v1/${access}`, headers: who === undefined ? {} : { who } })
}

describe('who may use a route', () => {
  const ranks: readonly Role[] = ['viewer', 'operator', 'admin']
  const status = (access: Access, who: string) => {
    if (access === 'open') return 200
    if (access === 'host' || who === 'host') return access === who ? 200 : 403
    return ranks.indexOf(callerNamed(who).role) >= ranks.indexOf(access) ? 200 : 403
  }
  const cases = (['open', 'viewer', 'operator', 'admin', 'host'] as const).flatMap((access) =>
    Object.keys(callers).map((who) => [access, who, status(access, who)] as const),
  )
  it.each(cases)('a route for %s, asked by %s: %i', async (access, who, expected) => {
    expect((await create()(access, who)).statusCode).toBe(expected)
    expect(mayUse(callerNamed(who), access)).toBe(expected === 200)
  })

  it.each(['viewer', 'operator', 'admin', 'host'])(
    'a route for %s refuses a request without credentials',
    async (access) => {
      expect((await create()(access)).statusCode).toBe(401)
    },
  )
})

describe('a decision of the program', () => {
  it('takes the place of the comparison of roles, and may change the caller', async () => {
    const ask = create((request, caller, access) => {
      if (request.url.endsWith('admin')) return { refusal: new AppError(generalErrors.NotFound, 'not here') }
      const raised: Caller = { ...caller, role: 'admin' }
      return { caller: raised, ...authorizeByRole(request, raised, access) }
    })
    expect((await ask('operator', 'viewer')).json()).toMatchObject({ userName: 'viewer', role: 'admin' })
    expect((await ask('admin', 'admin')).statusCode).toBe(404)
    expect((await ask('host', 'viewer')).statusCode).toBe(403)
  })
})

describe('a change without the Authorization header', () => {
  it.each([
    ['viewer', 403],
    ['key', 200],
    ['host', 403],
  ])('by the credentials of a %s: %i', async (who, expected) => {
    expect((await create()('viewer', who, 'POST')).statusCode).toBe(expected)
  })
  it('a host needs no origin: its token is never a cookie', async () => {
    expect((await create()('host', 'host', 'POST')).statusCode).toBe(200)
  })
})
