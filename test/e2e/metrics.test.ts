import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { families } from '../../src/edgehostd/declarations.ts'
import { readMetrics, valueOf } from '../support/metrics-text.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { findLeaks } from './host/leaks.ts'
import { output, run } from './host/process.ts'
import { fetchPrometheus, startPrometheus, type Prometheus } from './host/prometheus.ts'

const right = 'right canary 1101'
const scrapeToken = 'scrape-token-canary-1101'
const tokenFile = '/etc/edgehostd/metrics-token'
const documents = join(import.meta.dirname, '../../docs/monitoring')

let host: Edgehostd
let promtool: string
beforeAll(async () => {
  promtool = (await fetchPrometheus()).promtool
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'victor', password: right })
  await host.write(tokenFile, `${scrapeToken}\n`, 0o600)
  await host.configure('metrics', `metrics: {tokenFile: ${tokenFile}}\n`)
})
afterAll(() => host.unplug())

const scrape = (ask: Parameters<Edgehostd['http']>[2]) => host.http('GET', '/metrics', ask)
const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

describe('promtool', () => {
  it('promtool finds no fault in the metrics of a host', async () => {
    const { text } = await scrape({ from: 'loopback' })
    const { exitCode, stdout, stderr } = await run(promtool, ['check', 'metrics'], { input: text })
    expect(stdout + stderr).toBe('')
    expect(exitCode).toBe(0)
  })

  it('promtool accepts the alert rules, and their tests pass', async () => {
    expect(await output(promtool, ['check', 'rules', join(documents, 'alerts.yaml')])).toContain('SUCCESS')
    expect(await output(promtool, ['test', 'rules', join(documents, 'alerts.test.yaml')])).toContain(
      'SUCCESS',
    )
  })
})

describe('the metrics of a host', () => {
  it('the metrics are open to clients on the host, and to others with an accepted token', async () => {
    expect((await scrape({ from: 'loopback' })).status).toBe(200)
    expect((await scrape({})).status).toBe(401)
    expect((await scrape({ headers: { 'X-Forwarded-For': '127.0.0.1' } })).status).toBe(401)
    expect((await scrape(bearer(scrapeToken))).status).toBe(200)
    expect((await scrape({ from: await host.newAddress('ipv6'), ...bearer(scrapeToken) })).status).toBe(200)
    expect((await scrape(bearer(`${scrapeToken}x`))).status).toBe(401)
    expect((await host.http('GET', '/v1/users/current', bearer(scrapeToken))).status).toBe(401)
    const { token } = await host.openSession('anna', right)
    expect((await scrape({ token })).status).toBe(200)
    const viewer = await host.openSession('victor', right)
    expect((await scrape({ token: viewer.token })).status).toBe(403)
  })

  it('every metric has a value once the facts are known and the jobs have run', async () => {
    // Requests to this host are not limited.
    const absent = new Set([
      'edgehostd_rate_limit_refusals_total',
      // Without a cluster.
      'edgehostd_cluster_phase',
      'edgehostd_cluster_healthy',
    ])
    // Without its password: a request of the registry counts as any other.
    await host.output(['curl', '--silent', 'http://127.0.0.1:5081/v2/'])
    await eventually(async () => {
      const { text } = await scrape({ from: 'loopback' })
      const present = new Set(readMetrics(text).map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')))
      const missing = Object.keys(families).filter((name) => !present.has(name) && !absent.has(name))
      expect(missing).toEqual([])
      expect(valueOf(readMetrics(text), 'edgehostd_fact_age_seconds', { fact: 'disks' })).toBeLessThan(60)
    })
  })

  it('the metrics are those of this host', async () => {
    const lines = readMetrics((await scrape({ from: 'loopback' })).text)
    const size = Number(await host.output(['stat', '-c', '%s', '/var/lib/edgehostd/edgehostd.db']))
    expect(valueOf(lines, 'edgehostd_database_size_bytes')).toBe(size)
    const end = await output('openssl', ['x509', '-noout', '-enddate', '-in', host.cacert])
    expect(valueOf(lines, 'edgehostd_certificate_expiry_timestamp_seconds')).toBe(
      Date.parse(end.replace('notAfter=', '')) / 1_000,
    )
    const files = await host.sh(`ls /proc/${await host.mainPid()}/fd | wc -l`)
    expect(Math.abs((valueOf(lines, 'process_open_fds') ?? 0) - Number(files))).toBeLessThan(10)
    expect(valueOf(lines, 'process_max_fds')).toBe(8_192)
    expect(valueOf(lines, 'edgehostd_logins_total', { purpose: 'login', outcome: 'accepted' })).toBe(2)
  })

  it('there are no metrics when they are switched off', async () => {
    await host.configure('metrics', 'metrics: {enabled: false}\n')
    expect((await scrape({ from: 'loopback' })).status).toBe(404)
    await host.configure('metrics', `metrics: {tokenFile: ${tokenFile}}\n`)
  })
})

describe('a real prometheus', () => {
  const config = (target: string, authorization: string) => `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [${documents}/alerts.yaml]
scrape_configs:
  - job_name: edgehostd
    scheme: https
    ${authorization}
    tls_config: {ca_file: ${host.cacert}}
    static_configs: [{targets: ['${target}:5080']}]
`

  /** Runs one in a namespace until a check of it passes. */
  async function withPrometheus(
    namespace: number,
    yaml: string,
    check: (prometheus: Prometheus) => Promise<void>,
  ): Promise<void> {
    const prometheus = await startPrometheus(namespace, yaml)
    try {
      await eventually(() => check(prometheus), 30_000)
    } finally {
      await prometheus.stop()
    }
  }

  const scrapesWell = async ({ query }: Prometheus) => {
    expect(await query('up == 1')).toMatchObject([{ metric: { job: 'edgehostd' }, value: 1 }])
    const [scraped] = await query('edgehostd_http_requests_total{route="/metrics",status="200"} > 1')
    expect(scraped?.metric).toMatchObject({ method: 'GET', job: 'edgehostd' })
    const [build] = await query('edgehostd_build_info')
    expect(build?.metric).toMatchObject({ mode: 'airgap' })
    const [fast] = await query(
      'histogram_quantile(0.99, sum by (le) (edgehostd_http_request_duration_seconds_bucket))',
    )
    expect(fast?.value).toBeGreaterThan(0)
    expect(await query('scrape_samples_post_metric_relabeling > 100')).toHaveLength(1)
  }

  it('a prometheus on the host scrapes it without a token, and evaluates every rule', async () => {
    await withPrometheus(host.leader, config('127.0.0.1', ''), async (prometheus) => {
      await scrapesWell(prometheus)
      const { groups } = (await prometheus.ask('/api/v1/rules')) as {
        readonly groups: readonly {
          readonly rules: readonly { readonly health: string; readonly state: string }[]
        }[]
      }
      const rules = groups.flatMap((group) => group.rules)
      expect(rules.length).toBeGreaterThan(8)
      expect(new Set(rules.map(({ health }) => health))).toEqual(new Set(['ok']))
      // A host that has just started is well.
      expect(rules.filter(({ state }) => state === 'firing')).toEqual([])
    })
  })

  it('a prometheus elsewhere scrapes it with the token of its file', async () => {
    const credentials = join(host.folder, 'scrape-token')
    await writeFile(credentials, scrapeToken, { mode: 0o600 })
    const authorization = `authorization: {credentials_file: ${credentials}}`
    await withPrometheus(host.clientNamespace(), config('10.77.0.1', authorization), scrapesWell)
  })

  it('a prometheus elsewhere without a token is refused', async () => {
    await withPrometheus(host.clientNamespace(), config('10.77.0.1', ''), async ({ ask, query }) => {
      expect(await query('up')).toMatchObject([{ value: 0 }])
      expect(JSON.stringify(await ask('/api/v1/targets'))).toContain('HTTP status 401')
    })
  })
})

describe('the token file', () => {
  it('the token file is read again on reload', async () => {
    await host.write(tokenFile, 'another-token-canary-1101', 0o600)
    await host.output(['systemctl', 'reload', 'edgehostd'])
    await eventually(async () => {
      expect((await scrape(bearer('another-token-canary-1101'))).status).toBe(200)
      expect((await scrape(bearer(scrapeToken))).status).toBe(401)
    })
  })

  it('a token file that others can read stops the start with advice; once mended, the daemon starts', async () => {
    await host.output(['chmod', '0644', tokenFile])
    const { exitCode } = await host.run(['systemctl', 'restart', 'edgehostd'])
    expect(exitCode).not.toBe(0)
    const messages = (await host.log()).map(({ msg }) => msg)
    expect(messages).toContain(
      `metrics.tokenFile: ${tokenFile} has mode 644, so others may read it: chmod 0600 ${tokenFile}`,
    )
    await host.output(['chmod', '0600', tokenFile])
    await eventually(async () => expect((await scrape({ from: 'loopback' })).status).toBe(200), 30_000)
  })

  it('the token is only in its file', async () => {
    const tokens = [scrapeToken, 'another-token-canary-1101']
    expect(await findLeaks(host, tokens)).toEqual([tokenFile])
  })
})
