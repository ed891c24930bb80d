import { randomUUID, X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InjectOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { families } from '../../../src/edgehostd/declarations.ts'
import { readMetrics, valueOf } from '../../support/metrics-text.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { createTestEdge, currentPath, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const scrapeToken = 'a-token-for-scrapers-alone'
const elsewhere = '192.0.2.7'
const folder = mkdtempSync(join(tmpdir(), 'metrics-'))

let edge: TestEdge
beforeAll(async () => {
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, `${scrapeToken}\n`)
  chmodSync(tokenFile, 0o600)
  edge = await createTestEdge({
    tokenFile,
    rateLimits: {
      enabled: true,
      requestsPerSecond: 50,
      burst: 100,
      login: { requestsPerSecond: 50, burst: 10 },
      blobs: { requestsPerSecond: 50, burst: 10 },
      resources: ['settings=1/1'],
      trackedKeys: 1_000,
    },
  })
  // A pull that is refused is counted too.
  await edge.content.start?.({ address: '127.0.0.1', port: 0 })
  await (await fetch(`http://127.0.0.1:${edge.content.registry.state().port}/v2/`)).text()
  // Some of them come every five seconds.
  edge.daemon.rooms.jobs.background?.()
  await waitFor(
    async () =>
      expect(
        valueOf(await lines(), 'edgehostd_job_duration_seconds', { job_name: 'own addresses' }),
      ).toBeDefined(),
    { timeout: 60_000, interval: 100 },
  )
})
afterAll(async () => {
  await edge.stop()
  rmSync(folder, { recursive: true })
})

const scrape = (options: InjectOptions = {}) =>
  edge.app.inject({ method: 'GET', url: '/metrics', ...options })
const lines = async () => readMetrics((await scrape()).body)
/** How many series there are of requests; jobs, programs and the rest add theirs whenever they run. */
const requestSeries = async () =>
  (await lines()).filter(({ name }) => name.startsWith('edgehostd_http_request')).length

describe('access to /metrics', () => {
  const statusOf = async (remoteAddress: string, headers: Record<string, string> = {}) =>
    (await scrape({ remoteAddress, headers })).statusCode

  it.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])(
    'the loopback address %s needs no token',
    async (address) => {
      expect(await statusOf(address)).toBe(200)
      expect(await statusOf(address, { authorization: 'garbage' })).toBe(200)
    },
  )

  it('another address needs a token, regardless of headers about the address', async () => {
    for (const headers of [
      {},
      { 'x-forwarded-for': '127.0.0.1' },
      { forwarded: 'for=127.0.0.1' },
      { 'x-real-ip': '::1' },
      { host: 'localhost' },
    ]) {
      expect(await statusOf(elsewhere, headers)).toBe(401)
      expect(await statusOf('2001:db8::1', headers)).toBe(401)
    }
  })

  it("from elsewhere the scraper's token is accepted, only as Bearer and only whole", async () => {
    expect(await statusOf(elsewhere, { authorization: `Bearer ${scrapeToken}` })).toBe(200)
    for (const authorization of [
      scrapeToken,
      `Bearer ${scrapeToken.slice(1)}`,
      'Bearer',
      `Basic ${scrapeToken}`,
    ])
      expect(await statusOf(elsewhere, { authorization })).toBe(401)
    expect(await statusOf(elsewhere, { cookie: `Authorization=${scrapeToken}` })).toBe(401)
  })

  it("the scraper's token is accepted for the metrics only", async () => {
    const headers = { authorization: `Bearer ${scrapeToken}` }
    for (const [index, { method, url, access }] of edge.routes.routes.entries()) {
      if (access === 'open' || url === '/metrics') continue
      // Each from an address of its own: none has asked too often.
      const remoteAddress = `192.0.2.${index + 10}`
      const reply = await edge.app.inject({ method: method as 'GET', url, headers, remoteAddress })
      expect(reply.statusCode, `${method} ${url}`).toBe(401)
    }
  })

  it('a refusal of the metrics has the standard error body', async () => {
    const reply = await scrape({ remoteAddress: elsewhere })
    expect(reply.json<ErrorReply>()).toMatchObject({
      code: 'Unauthenticated',
      ref: expect.any(String) as string,
    })
  })

  it('no caller may read the metrics where they are switched off', async () => {
    const without = await createTestEdge({ host: edge.host, metricsEnabled: false })
    expect((await without.get('/metrics')).statusCode).toBe(404)
    await without.stop()
  })

  it('a scrape is neither rate-limited nor audited', async () => {
    const records = () => edge.audit.unwritten() + edge.lines.filter(({ kind }) => kind === 'audit').length
    const before = records()
    // One more than any client may ask at once.
    const replies = await Promise.all(Array.from({ length: 101 }, () => scrape()))
    expect(new Set(replies.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
    expect(replies[0]?.headers).not.toHaveProperty('ratelimit')
    expect(records()).toBe(before)
  })
})

describe('the reply', () => {
  it('the reply is the text format 0.0.4, or OpenMetrics where the client prefers it', async () => {
    const text = await scrape()
    expect(text.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    const open = await scrape({
      headers: { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' },
    })
    expect(open.headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    expect(open.body.endsWith('\n# EOF\n')).toBe(true)
  })

  it('the reply has each documented metric with its help once, and no other', async () => {
    const { body } = await scrape()
    const helped = [...body.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name, help]) => [name, help])
    expect(helped).toEqual(Object.entries(families).map(([name, { help }]) => [name, help]))
    const documented = readFileSync('docs/metrics.md', 'utf8')
    for (const { name, labels } of readMetrics(body)) {
      const whole = name in families ? name : name.replace(/_(bucket|sum|count)$/, '')
      const family = families[whole]
      expect(family, name).toBeDefined()
      expect(Object.keys(labels).filter((label) => label !== 'le')).toEqual(family?.labels ?? [])
      expect(documented).toContain(`| \`${whole}\` | ${family?.type} |`)
    }
  })

  it('every metric has a value on a running host with a cluster', async () => {
    plantCluster(edge)
    const present = new Set((await lines()).map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')))
    // No job has run.
    const absent = new Set(['edgehostd_job_duration_seconds', 'edgehostd_job_success_age_seconds'])
    expect(Object.keys(families).filter((name) => !present.has(name) && !absent.has(name))).toEqual([])
  })

  it('a metric that is not known yet is left out', async () => {
    const found = await lines()
    expect(valueOf(found, 'edgehostd_fact_age_seconds', { fact: 'disks', refresh: 'seconds' })).toBe(1.5)
    expect(valueOf(found, 'edgehostd_fact_age_seconds', { fact: 'ntp' })).toBeUndefined()
    expect(valueOf(found, 'edgehostd_fact_failing', { fact: 'ntp' })).toBe(1)
  })
})

describe('what is counted', () => {
  /** By how much a value grows while something is done. */
  async function growth(name: string, labels: Record<string, string>, work: () => Promise<unknown>) {
    const before = valueOf(await lines(), name, labels) ?? 0
    await work()
    return (valueOf(await lines(), name, labels) ?? 0) - before
  }

  it('a request is counted by its declared route and its status', async () => {
    const { access } = await edge.login('alice')
    const end = { method: 'DELETE', route: '/v1/users/sessions/:uid', status: '404' }
    const ask = () =>
      edge.app.inject({
        method: 'DELETE',
        url: `/v1/users/sessions/${randomUUID()}`,
        headers: { authorization: access },
      })
    expect(await growth('edgehostd_http_requests_total', end, ask)).toBe(1)
    const read = { method: 'GET', route: currentPath }
    const get = () => edge.get(currentPath, access)
    expect(await growth('edgehostd_http_requests_total', { ...read, status: '200' }, get)).toBe(1)
    expect(await growth('edgehostd_http_request_duration_seconds_count', read, get)).toBe(1)
    expect(await growth('edgehostd_http_request_duration_seconds_bucket', { ...read, le: '10' }, get)).toBe(1)
    expect(await growth('edgehostd_http_request_duration_seconds_sum', read, get)).toBeGreaterThan(0)
    const refused = { ...read, status: '401' }
    expect(await growth('edgehostd_http_requests_total', refused, () => edge.get(currentPath))).toBe(1)
  })

  it('requests without a route are counted together, whatever their path', async () => {
    const before = await requestSeries()
    const nothing = { method: 'other', route: 'none' }
    const ask = async () => {
      for (let index = 0; index < 500; index += 1)
        await edge.get(`/v1/nothing/${index}/${'%41'.repeat(index % 9)}`)
    }
    expect(await growth('edgehostd_http_requests_total', { ...nothing, status: '404' }, ask)).toBe(500)
    const wrongMethod = () => edge.app.inject({ method: 'PATCH', url: '/v1/ping' })
    expect(await growth('edgehostd_http_requests_total', { ...nothing, status: '405' }, wrongMethod)).toBe(1)
    const badPath = () => edge.get('/v1/%zz')
    expect(await growth('edgehostd_http_requests_total', { ...nothing, status: '400' }, badPath)).toBe(1)
    // The series of these three statuses, and the histogram of the one route.
    expect((await requestSeries()) - before).toBeLessThanOrEqual(3 + 17)
  })

  it('logins are counted by outcome', async () => {
    const logins = (outcome: string, work: () => Promise<unknown>) =>
      growth('edgehostd_logins_total', { purpose: 'login', outcome }, work)
    expect(await logins('accepted', () => edge.login('alice'))).toBe(1)
    expect(await logins('refused', () => edge.tryLogin('alice', 'wrong'))).toBe(1)
    expect(await logins('refused', () => edge.tryLogin('no-such-user', 'wrong'))).toBe(1)
  })

  it('refusals at the rate limit are counted by resource', async () => {
    const { access } = await edge.login('alice')
    const ask = () => Promise.all(Array.from({ length: 5 }, () => edge.get('/v1/edge-mgmt/settings', access)))
    expect(await growth('edgehostd_rate_limit_refusals_total', { resource: 'settings' }, ask)).toBe(4)
  })

  it('sessions, and the bytes of database and disk, are shown', async () => {
    const found = await lines()
    expect(valueOf(found, 'edgehostd_sessions')).toBe(edge.sessions.list().length)
    expect(valueOf(found, 'edgehostd_database_size_bytes')).toBeGreaterThanOrEqual(4_096)
    expect(valueOf(found, 'edgehostd_database_wal_size_bytes')).toBeGreaterThan(4_096)
    const free = valueOf(found, 'edgehostd_state_filesystem_free_bytes') ?? 0
    expect(free).toBeGreaterThan(0)
    expect(valueOf(found, 'edgehostd_state_filesystem_size_bytes')).toBeGreaterThanOrEqual(free)
    const pem = readFileSync(join(edge.stateDirectory, 'tls', 'certificate.pem'))
    expect(valueOf(found, 'edgehostd_certificate_expiry_timestamp_seconds')).toBe(
      new X509Certificate(pem).validToDate.getTime() / 1_000,
    )
  })

  it('the figures of this process are shown', async () => {
    const found = await lines()
    expect(valueOf(found, 'process_resident_memory_bytes')).toBeGreaterThan(10e6)
    expect(valueOf(found, 'process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(valueOf(found, 'process_open_fds')).toBeGreaterThan(3)
    expect(valueOf(found, 'process_max_fds')).toBeGreaterThan(100)
    const started = valueOf(found, 'process_start_time_seconds') ?? 0
    expect(Math.abs(Date.now() / 1_000 - process.uptime() - started)).toBeLessThan(5)
  })
})

it('the metrics contain no secret and no user name', async () => {
  const { access, refresh } = await edge.login('alice')
  await edge.tryLogin('alice', 'a wrong password')
  await edge.get(`/v1/users/sessions?filters=metadata.name=alice&token=${access}`, access)
  await edge.get(`/alice/${scrapeToken}`)
  for (const headers of [{}, { accept: 'application/openmetrics-text' }]) {
    const { body } = await scrape({ headers })
    const secrets = [access, refresh, scrapeToken, edge.secret.toString('hex'), 'a wrong password', elsewhere]
    for (const { name, password } of edge.host.accounts.values()) secrets.push(name, password)
    for (const { uid } of edge.sessions.list()) secrets.push(uid)
    for (const secret of secrets) {
      const word = new RegExp(`(?<![a-z])${secret.replace(/[^\w]/g, '\\$&')}(?![a-z])`)
      expect(word.test(body), secret).toBe(false)
    }
  }
})

describe('docs/monitoring', () => {
  interface Panel {
    readonly title: string
    readonly targets: readonly { readonly expr: string }[]
  }
  const dashboard = JSON.parse(readFileSync('docs/monitoring/grafana-dashboard.json', 'utf8')) as {
    readonly panels: readonly Panel[]
    readonly templating: { readonly list: readonly { readonly definition?: string }[] }
  }
  const rules = parse(readFileSync('docs/monitoring/alerts.yaml', 'utf8')) as {
    readonly groups: readonly {
      readonly rules: readonly { readonly alert: string; readonly expr: string }[]
    }[]
  }
  const alerts = rules.groups.flatMap((group) => group.rules)
  const expressions = [
    ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
    ...dashboard.templating.list.flatMap(({ definition }) =>
      definition ? [['variable', definition] as const] : [],
    ),
    ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ]

  // The names that stand outside of braces, brackets and lists of labels, and are no function.
  const metricsIn = (expr: string) =>
    [
      ...expr
        .replace(/\{[^}]*\}|\[[^\]]*\]|\b(by|without) \([^)]*\)|"[^"]*"/g, ' ')
        .replace(/, instance\)$/, ')')
        .matchAll(/\b[a-z_]{2,}\b(?!\s*\()/g),
    ].flatMap(([name]) => (words.has(name) ? [] : [name]))
  const words = new Set(['or', 'and', 'unless', 'offset', 'up'])

  it.each(expressions)('%s uses existing metrics and labels: %s', async (_title, expr) => {
    const found = await lines()
    const names = metricsIn(expr)
    if (!expr.includes('up{')) expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect(found.map((line) => line.name)).toContain(name)
    const known = new Set(['job', 'instance', ...found.flatMap(({ labels }) => Object.keys(labels))])
    const labels = [...expr.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label)
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */))
    expect([...labels, ...grouped].filter((label) => !known.has(label))).toEqual([])
  })

  it('every metric has a panel or an alert', () => {
    const asked = new Set(expressions.flatMap(([, expr]) => metricsIn(expr)))
    const without = Object.keys(families).filter((name) => !asked.has(name) && !asked.has(`${name}_bucket`))
    expect(without).toEqual([])
  })

  it('every alert has a test that it fires and that it does not', () => {
    const { tests } = parse(readFileSync('docs/monitoring/alerts.test.yaml', 'utf8')) as {
      readonly tests: readonly {
        readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts?: unknown[] }[]
      }[]
    }
    const all = tests.flatMap((each) => each.alert_rule_test)
    for (const { alert } of alerts) {
      const named = all.filter(({ alertname }) => alertname === alert)
      expect(
        named.some(({ exp_alerts: fired }) => fired !== undefined),
        alert,
      ).toBe(true)
      expect(
        named.some(({ exp_alerts: fired }) => fired === undefined),
        alert,
      ).toBe(true)
    }
  })
})
