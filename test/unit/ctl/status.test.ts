import { describe, expect, it } from 'vitest'
import type { AuditView } from '../../../src/audit/schemas.ts'
import { displayWidth } from '../../../src/ctl/layout.ts'
import { renderStatus, type HostStatus } from '../../../src/edgehostctl/status.ts'
import type { EdgeHostInfo } from '../../../src/host/schemas.ts'
import type { PlatformLink } from '../../../src/uplink/schemas.ts'
import { hostBody } from '../../support/host-body.ts'
import { detailsOf } from '../../support/played-cluster.ts'
import { serviceStatus } from '../../support/test-edge.ts'

const now = Date.parse('2026-01-31T09:30:00Z')
const host = JSON.parse(await hostBody()) as EdgeHostInfo
const service = serviceStatus('airgap')
const well: HostStatus = { host, service, platform: undefined, cluster: undefined, sessions: [], errors: [] }
const narrow = { columns: 80, isColoured: false }
const piped = { columns: Infinity, isColoured: false }
const render = (found: Partial<HostStatus>, paper = piped) =>
  renderStatus({ ...well, ...found }, { paper, command: 'edgehostctl', now })
const next = (found: Partial<HostStatus>) => render(found).split('Next: ')[1]

const failed: AuditView = {
  metadata: { createTimestamp: '2026-01-31T08:00:00.123Z', edgeHostId: 'edge', number: 1, uid: 'u' },
  spec: {
    actionType: 'update',
    actor: { actorType: 'user', uid: 'alice' },
    message: `Change the password\u001b[2J ${'and more '.repeat(20)}`,
    outcome: 'failed',
    resource: { kind: 'user' },
  },
}
const withCondition: EdgeHostInfo = {
  ...host,
  status: {
    ...host.status,
    conditions: [{ type: 'disks', message: 'lsblk: \u009b31m no', reason: 'CannotBeRead', status: 'False' }],
  },
}

describe('the screen', () => {
  it('the status of a healthy host says that there is nothing to do', () => {
    const text = render({})
    expect(text).toContain('State: running\n')
    expect(text).toContain('Uptime: 1 h 30 min, since 2026-01-31 08:00:00Z\n')
    expect(text).toContain('Address: https://192.0.2.7:5080\n')
    expect(text).toContain('https://[2001:db8::7]:5080\n')
    expect(text).toContain(`Fingerprint: ${service.certificate.fingerprint}\n`)
    expect(text).toContain('Certificate: until 2028-05-05, 824 days left\n')
    expect(next({})).toBe('nothing to do\n')
  })

  it('a connected host shows its platform, and why it is not reached', () => {
    expect(render({})).not.toContain('Platform:')
    const link: PlatformLink = {
      ...{ mode: 'connected', url: 'https://platform.example', registrationStatus: 'registered' },
      ...{ isConnected: true, since: '2026-01-31T08:00:00.123Z', events: { waiting: 0, dropped: 0 } },
    }
    const text = render({ platform: link })
    expect(text).toContain('Platform: https://platform.example\n')
    expect(text).toContain(' connected since 2026-01-31 08:00:00Z\n')
    expect(next({ platform: link })).toBe('nothing to do\n')
    const cause = { kind: 'name', message: 'the name cannot be resolved' }
    const lost = render({ platform: { ...link, isConnected: false, cause } })
    expect(lost).toContain(' not connected since 2026-01-31 08:00:00Z\n')
    expect(lost).toContain(' the name cannot be resolved\n')
    expect(lost.split('Next: ')[1]).toContain('edgehostctl platform status')
  })

  it('the status of a viewer leaves out what only administrators may see', () => {
    const text = render({ service: undefined, errors: undefined })
    expect(text).not.toContain('Fingerprint')
    expect(text).toContain('Errors: only administrators see them\n')
  })

  it('the status fits 80 columns and contains no control characters, whatever the host sends', () => {
    const text = render({ host: withCondition, errors: [failed] }, narrow)
    for (const line of text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(80)
    // eslint-disable-next-line no-control-regex -- this is what is looked for
    expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })
})

describe('what to do next', () => {
  const certificate = { ...service.certificate, expirationTimestamp: '2026-02-10T00:00:00Z' }
  it.each<[string, Partial<HostStatus>, RegExp]>([
    ['a host that is not ready', { service: { ...service, failing: ['database'] } }, /journalctl.*ready/],
    [
      'a host with a check that an operator has to answer',
      { service: { ...service, notes: ['audit trail complete'] } },
      /why a check fails: journalctl/,
    ],
    ['a full disk', { service: { ...service, state: { freeBytes: 1, totalBytes: 100 } } }, /df -h/],
    ['audits that could not be written', { service: { ...service, unwrittenAudits: 2 } }, /audit verify/],
    ['facts that could not be read', { host: withCondition }, /journalctl -u edgehostd -p warning/],
    ['an own certificate near its end', { service: { ...service, certificate } }, /should have been renewed/],
    [
      "an administrator's certificate near its end",
      { service: { ...service, certificate: { ...certificate, isOwn: false } } },
      /systemctl reload edgehostd/,
    ],
    ['a failure', { errors: [failed] }, /edgehostctl audit list/],
  ])('the status says what to do next for %s', (_, found, words) => {
    expect(next(found)).toMatch(words)
  })

  const gone =
    'the address 10.77.0.1 of the node is not on this host any more (it has none); give it back: ip address add 10.77.0.1/PREFIX dev host0'
  it.each<[string, Parameters<typeof detailsOf>[0], RegExp]>([
    [
      'a cluster whose address is gone',
      { clusterState: 'Error', phase: 'Unknown', clusterStateReason: gone },
      /^the cluster: the address 10\.77\.0\.1 .*ip address add .*\n.*edgehostctl cluster get\n$/,
    ],
    [
      'a cluster that runs and is not healthy',
      { health: { status: 'Unhealthy', reason: 'this host was renamed' } },
      /^the cluster: this host was renamed\n.*edgehostctl cluster get\n$/,
    ],
    [
      'a cluster that is being made',
      { clusterState: 'Provisioning', phase: 'Provisioning', clusterStateReason: 'pull the images' },
      /^the cluster: pull the images\n.*edgehostctl cluster watch\n$/,
    ],
  ])('the status says the reason and the next command of %s', (_, given, words) => {
    expect(next({ cluster: detailsOf(given) })).toMatch(words)
  })

  it('a cluster that is well is shown, and leaves nothing to do', () => {
    expect(render({ cluster: detailsOf() })).toContain('Cluster: shop, Kubernetes 1.34.4\n')
    expect(next({ cluster: detailsOf() })).toBe('nothing to do\n')
  })

  it('a refused login alone is nothing to do', () => {
    const refused = { ...failed, spec: { ...failed.spec, outcome: 'refused' as const } }
    expect(next({ errors: [refused] })).toBe('nothing to do\n')
  })
})
