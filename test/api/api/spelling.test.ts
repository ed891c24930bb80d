import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { identifyByToken } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import { addSpelling, describeSpelling } from '../../../src/api/spelling.ts'
import { listParameters } from '../../../src/lists/query.ts'
import { captureLog } from '../../support/https-server.ts'
import { readDocument } from '../../support/api-document.ts'

const docs = join(import.meta.dirname, '../../../docs')

let changes: number
let app: ReturnType<typeof createServer>['app']
beforeEach(() => {
  changes = 0
  ;({ app } = createServer({
    log: captureLog().log,
    bodyLimitBytes: 1_000,
    mode: 'airgap',
    identify: identifyByToken((token) =>
      token === 'viewer' ? { userName: 'x', role: 'viewer', sessionUid: 'x' } : undefined,
    ),
    onAuthenticated: () => undefined,
  }))
  addSpelling(app, ['ProjectUid'])
  const querystring = listParameters({ name: 'things', fields: {}, key: 'uid' })
  app.get('/v1/things', { config: { access: 'viewer' }, schema: { querystring } }, () => 'things')
  app.post('/v1/things', { config: { access: 'viewer' } }, () => String((changes += 1)))
})

async function ask(method: 'GET' | 'POST', query: string, token = 'viewer') {
  const headers = { authorization: `Bearer ${token}` }
  const { statusCode, body } = await app.inject({ method, url: `/v1/things?${query}`, headers })
  if (statusCode === 200) return 200
  const { message, details } = JSON.parse(body) as { message: string; details?: { field?: string } }
  return [statusCode, message, details?.field]
}

it('refuses a parameter that is nearly one of the route, or of all routes', async () => {
  expect(await ask('GET', 'filter=a')).toEqual([400, 'filter is misspelt; write filters', 'filter'])
  expect(await ask('GET', 'order=a')).toEqual([400, 'order is misspelt; write orderBy', 'order'])
  expect(await ask('POST', 'project=a')).toEqual([400, 'project is misspelt; write ProjectUid', 'project'])
  expect(await ask('GET', 'limit=1&orderby=a')).toEqual([
    400,
    'orderby is misspelt; write orderBy',
    'orderby',
  ])
  expect(await ask('GET', 'project_uid=a')).toEqual([
    400,
    'project_uid is misspelt; write ProjectUid',
    'project_uid',
  ])
  expect(await ask('GET', 'lim%1bit=1')).toEqual([
    400,
    'lim\\u001bit is misspelt; write limit',
    'lim\\u001bit',
  ])
})

it('reads what is right, and tells a caller who is not logged in nothing', async () => {
  expect(await ask('GET', 'limit=1&fields=&ProjectUid=a')).toBe(200)
  expect(await ask('GET', 'filter=a', 'other')).toEqual([401, expect.anything(), undefined])
})

it('changes nothing where a dry run is asked for that the route does not offer', async () => {
  const refused = (name: string) => [400, `${name} is not offered here; nothing was changed`, name]
  expect(await ask('POST', 'dryRun=true')).toEqual(refused('dryRun'))
  expect(await ask('POST', 'dryrun')).toEqual(refused('dryrun'))
  expect(changes).toBe(0)
  expect(await ask('POST', 'pretty=true')).toBe(200)
  expect(await ask('GET', 'dryRun=true')).toBe(200)
})

// Those of the published APIs that these programs do not have everywhere.
const published =
  'cleanupProjectResources endpoint extendedSession format forceDelete frp includeNonSpectroLabels includePackAnnotations includePackMeta includeTags logCount namespace peerId profileType publish quickFilter resolveNotification resolvePackValues resourceType setCookie tenantUid type'

it('ignores, on each route of both programs, what clients of the published APIs send', () => {
  const operations = ['openapi.json', 'platform-openapi.json'].flatMap(
    (name) => readDocument(readFileSync(join(docs, name), 'utf8')).operations,
  )
  expect(operations.length).toBeGreaterThan(100)
  const refused = operations.flatMap(({ method, path, parameters: all = [] }) => {
    const parameters = all.filter(({ in: place }) => place === 'query')
    const properties = Object.fromEntries(parameters.map(({ name }) => [name, {}]))
    return published.split(' ').flatMap((name) => {
      const request = {
        method,
        query: { [name]: '' },
        routeOptions: { schema: { querystring: { properties } } },
      }
      const problem = describeSpelling(request as never, ['ProjectUid'])
      return problem ? [`${method} ${path}: ${problem.message}`] : []
    })
  })
  // That name belongs to profiles.
  expect(
    refused.filter((each) => !each.endsWith('audits: resourceType is misspelt; write resourceKind')),
  ).toEqual([])
})
