import { describe, expect, it } from 'vitest'
import type { AuditView } from '../../../src/audit/schemas.ts'
import { displayWidth } from '../../../src/ctl/layout.ts'
import { renderStatus, type HostStatus } from '../../../src/edgehostctl/status.ts'
import type { EdgeHostInfo } from '../../../src/host/schemas.ts'
import type { AttentionList } from '../../../src/service/schemas.ts'
import type { PlatformLink } from '../../../src/uplink/schemas.ts'
import { hostBody } from '../../support/host-body.ts'
import { detailsOf } from '../../support/played-cluster.ts'
import { serviceStatus } from '../../support/test-edge.ts'

const now = Date.parse('2026-01-31T09:30:00Z')
const host = JSON.parse(await hostBody()) as EdgeHostInfo
const service = serviceStatus('airgap')
const well: HostStatus = {
  ...{ host, service, platform: undefined, cluster: undefined },
  ...{ attention: [], sessions: [], errors: [] },
}
const narrow = { columns: 80, isColoured: false }
const piped = { columns: Infinity, isColoured: false }
const render = (found: Partial<HostStatus>, paper = piped) =>
  renderStatus({ ...well, ...found }, { paper, command: 'edgehostctl', now })
const next = (found: Partial<HostStatus>) => render(found).split('Next: ')[1]

type Item = AttentionList['items'][number]
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
  const certificate: Item = {
    ...{ code: 'CertificateEnding', severity: 'warning' },
    ...{ message: 'the certificate ends 2026-02-10', command: 'systemctl reload edgehostd' },
  }
  const crash: Item = {
    ...{ code: 'PodsFailing', severity: 'error', message: 'the pack web: Crashing\u001b[2J: exit code 1' },
    ...{ command: 'edgehostctl cluster logs web-1 --namespace web' },
    sinceTimestamp: '2026-01-31T09:12:00.123Z',
  }
  it('the status shows each item with its time and its next command, in the order of the daemon', () => {
    expect(next({ attention: [crash, certificate] })).toMatch(
      /^the pack web: Crashing.*: exit code 1 \(since 2026-01-31 09:12:00Z\)\n *-> edgehostctl cluster logs web-1 --namespace web\n *the certificate ends 2026-02-10\n *-> systemctl reload edgehostd\n$/,
    )
  })

  it('the commands of the screen talk to the host that is shown', () => {
    const text = renderStatus(
      { ...well, attention: [crash, certificate] },
      { paper: piped, command: 'edgehostctl --host plant-7', now },
    )
    expect(text).toContain('-> edgehostctl --host plant-7 cluster logs web-1 --namespace web\n')
    expect(text).toContain('-> systemctl reload edgehostd\n')
  })

  it('an item whose message says what to do has no command', () => {
    const lacking: Item = {
      ...{ code: 'HostLacking', severity: 'error' },
      message: 'conntrack is missing: install it',
    }
    expect(next({ attention: [lacking] })).toBe('conntrack is missing: install it\n')
  })

  it('the colour is that of the most urgent item: what only goes on is no warning', () => {
    const coloured = { columns: 80, isColoured: true }
    const info: Item = { code: 'ClusterProvisioning', severity: 'info', message: 'it is being set up' }
    expect(render({ attention: [info] }, coloured).split('Next')[1]).not.toContain('\u001b[3')
    expect(render({ attention: [info, certificate] }, coloured).split('Next')[1]).toContain('\u001b[33m')
    expect(render({ attention: [crash, info] }, coloured).split('Next')[1]).toContain('\u001b[31m')
  })

  it('a host of an older version does not look as if there were nothing to do', () => {
    expect(next({ attention: undefined })).toBe('not known: the edgehostd of this host is older\n')
  })

  it('a failure is said with the command that shows it; a refused login alone is nothing to do', () => {
    expect(next({ errors: [failed] })).toBe(
      'an operation has failed\n              -> edgehostctl audit list\n',
    )
    const refused = { ...failed, spec: { ...failed.spec, outcome: 'refused' as const } }
    expect(next({ errors: [refused] })).toBe('nothing to do\n')
  })
})

describe('the cluster on the screen', () => {
  it('a cluster that is well is shown, and leaves nothing to do', () => {
    expect(render({ cluster: detailsOf() })).toContain('Cluster: shop, Kubernetes 1.34.4\n')
    expect(next({ cluster: detailsOf() })).toBe('nothing to do\n')
  })

  it('the version that runs is shown, and beside it the one to which it is being changed', () => {
    const changing = detailsOf({ k8sVersion: '1.33.13', k8sTargetVersion: '1.34.4' })
    expect(render({ cluster: changing })).toContain('Cluster: shop, Kubernetes 1.33.13 -> 1.34.4\n')
  })
})
