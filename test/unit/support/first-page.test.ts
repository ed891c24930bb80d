import { describe, expect, it } from 'vitest'
import { firstPage, type FirstPageFile } from '../../../src/support/first-page.ts'

const unit =
  'ActiveState=active\nSubState=running\nResult=success\nActiveEnterTimestamp=Sat 2026-11-28 09:00:00 UTC\n'
const status = { version: '0.1.0', startTimestamp: '2026-11-28T09:00:00Z', failing: [], notes: [] }
const running = {
  metadata: { name: 'shop', creationTimestamp: '2026-11-27T00:00:00Z' },
  status: {
    ...{
      revision: 3,
      clusterState: 'Running',
      phase: 'Running',
      clusterStateReason: '',
      k8sVersion: '1.34.4',
    },
    ...{ health: { status: 'Healthy' }, steps: [] },
  },
}

type Files = Partial<Record<FirstPageFile, object | string>>

const pageOf = (files: Files, problems: { from: string; problem: string }[] = []) =>
  firstPage({
    ...{ hostName: 'edge-1', madeTimestamp: '2026-11-28T12:00:00Z', version: '0.1.0', problems },
    files: new Map(
      Object.entries({ 'edgehostd.service.txt': unit, 'status.json': status, ...files }).map(
        ([name, content]) => [name, typeof content === 'string' ? content : JSON.stringify(content)],
      ),
    ),
  })
/** The lines of a section. */
const sectionOf = (page: string, title: string) => {
  const lines = page.split('\n')
  const from = lines.indexOf(title) + 1
  return lines.slice(from, lines.indexOf('', from))
}
const wrong = (...args: Parameters<typeof pageOf>) =>
  sectionOf(pageOf(...args), 'What is wrong, and since when')

describe('the first page of the archive', () => {
  it('a host without trouble has nothing wrong', () => {
    expect(wrong({ 'cluster-details.json': running })).toEqual(['  nothing that edgehostd knows of'])
    expect(sectionOf(pageOf({ 'cluster-details.json': running }), 'State')).toEqual([
      '- edgehostd 0.1.0 is ready; it runs since 2026-11-28T09:00:00Z',
      '- cluster shop, Kubernetes 1.34.4, revision 3: Running (Running), Healthy; made 2026-11-27T00:00:00Z',
    ])
  })

  it('a host without a cluster says so', () => {
    const page = pageOf({ 'cluster-details.json': { code: 'NoCluster', message: 'there is none' } })
    expect(sectionOf(page, 'State')).toContain('- there is no cluster')
  })

  it('failing checks are named', () => {
    expect(wrong({ 'status.json': { ...status, failing: ['database'], notes: ['content'] } })).toEqual([
      '- edgehostd is not ready: the check database fails; journal.txt says since when',
      '- the check content fails; journal.txt says since when',
    ])
  })

  it('a daemon that does not run has the state of its unit, and its last errors are of the journal', () => {
    const page = pageOf(
      {
        'status.json': '',
        'edgehostd.service.txt':
          'ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=78\nInactiveEnterTimestamp=Sat 2026-11-28 10:00:00 UTC\n',
        'journal-errors.txt': 'first\nsecond\n',
      },
      [{ from: 'GET /v1/x', problem: 'connect ENOENT' }],
    )
    expect(sectionOf(page, 'What is wrong, and since when')).toEqual([
      '- edgehostd does not run: failed, failed, exit-code (exit code 78) since Sat 2026-11-28 10:00:00 UTC',
    ])
    expect(sectionOf(page, 'State')).toEqual(['  not known, since the daemon does not answer'])
    expect(sectionOf(page, 'Last errors')).toEqual(['- second', '- first'])
    expect(sectionOf(page, 'What this page lacks')).toEqual(['- GET /v1/x: connect ENOENT'])
  })

  it('a daemon that runs and does not answer is told from one that does not run', () => {
    expect(wrong({ 'status.json': 'null' })).toEqual([
      '- edgehostd runs, and does not answer; it runs since Sat 2026-11-28 09:00:00 UTC',
    ])
  })

  it('the platform that is not connected has its time and cause', () => {
    const link = {
      ...{ mode: 'connected', url: 'https://p.example', isConnected: false },
      ...{ since: '2026-11-28T11:00:00Z', cause: { kind: 'x', message: 'it refuses' } },
    }
    expect(wrong({ 'platform.json': link })).toEqual([
      '- the platform https://p.example is not connected since 2026-11-28T11:00:00Z: it refuses',
    ])
    expect(wrong({ 'platform.json': { mode: 'airgap', isConnected: false } })).toEqual([
      '  nothing that edgehostd knows of',
    ])
  })

  it('a cluster in trouble has its reason, steps, revision, packs and conditions with their times', () => {
    const lines = wrong({
      'cluster-details.json': {
        ...running,
        status: {
          ...running.status,
          ...{ clusterState: 'Error', phase: 'Failed', clusterStateReason: 'the pack web: a probe fails' },
          health: { status: 'Unhealthy', reason: 'other' },
          deadline: { timestamp: '2026-11-28T12:05:00Z', leftSeconds: 300, action: 'takenBack' },
          steps: [
            {
              ...{ key: 'a', title: 'Install web', state: 'failed', failures: 2, reason: 'helm ended' },
              startTimestamp: '2026-11-28T11:50:00Z',
            },
            { key: 'b', title: 'Prepare', state: 'done', failures: 0 },
          ],
        },
      },
      'cluster-revisions.json': {
        items: [
          {
            revision: 4,
            outcome: 'held',
            reason: 'colour has no value',
            creationTimestamp: '2026-11-28T11:00:00Z',
          },
          { revision: 3, outcome: 'good', creationTimestamp: '2026-11-27T00:00:00Z', isActive: true },
          { revision: 2, outcome: 'failed', creationTimestamp: '2026-11-26T00:00:00Z', isActive: false },
        ],
      },
      'cluster-applications.json': {
        clusterProfileTemplates: [
          {
            uid: 'p1',
            packs: [
              { name: 'cni', version: '1.0', status: 'Available', conditions: [] },
              {
                ...{ name: 'web', version: '2.0', status: 'Unavailable', startTime: '2026-11-27T00:00:00Z' },
                conditions: [{ type: 'Available', status: 'False', message: '0 of 2 pods' }],
              },
            ],
          },
        ],
      },
      'cluster-events.json': {
        items: [
          event('2026-11-28T11:45:00Z', 'Warning'),
          event('2026-11-28T11:40:00Z', 'Warning'),
          event('2026-11-28T11:00:00Z', 'Normal'),
          event('2026-11-28T10:00:00Z', 'Warning'),
        ],
      },
      'cluster-lifecycle.json': {
        clusterEvents: [
          {
            type: 'ClusterReady',
            status: 'False',
            reason: 'NotReady',
            message: 'no',
            lastTransitionTime: '2026-11-28T11:41:00Z',
          },
          { type: 'HostRecorded', status: 'True' },
        ],
        edgeHostEvents: [],
      },
    })
    expect(lines).toEqual([
      '- the cluster shop is Error (Failed), Unhealthy: the pack web: a probe fails',
      '- the running change is taken back at 2026-11-28T12:05:00Z if it is not good before',
      '- the step "Install web" has failed 2 times, last begun 2026-11-28T11:50:00Z: helm ended',
      '- revision 4 is held since 2026-11-28T11:00:00Z: colour has no value',
      '- the pack web 2.0 is Unavailable since 2026-11-28T11:40:00Z: 0 of 2 pods',
      '- condition ClusterReady of the cluster is False (NotReady) since 2026-11-28T11:41:00Z: no',
    ])
  })

  it('what a daemon of another version leaves out does not keep the page from being made', () => {
    expect(() => pageOf({ 'cluster-details.json': { status: {} }, 'cluster-events.json': {} })).not.toThrow()
    expect(() => pageOf({ 'cluster-details.json': 'not JSON', 'error-logs.json': '[]' })).not.toThrow()
  })

  it('the last errors are of the API, the newest first, at most ten', () => {
    const items = Array.from({ length: 12 }, (_, index) => ({
      ...{ metadata: { creationTimestamp: `time-${index}` }, source: { component: 'kubelet' } },
      message: `line\n${index}`,
    }))
    const lines = sectionOf(pageOf({ 'error-logs.json': { items } }), 'Last errors')
    expect(lines).toHaveLength(11)
    expect(lines[0]).toBe('- time-0 kubelet: line 0')
    expect(lines[10]).toBe('- and 2 more')
  })
})

const event = (creationTimestamp: string, severity: string) => ({
  ...{ metadata: { creationTimestamp }, severity, reason: 'PackAvailable', message: 'x' },
  relatedObject: { kind: 'pack', name: 'p1/web' },
})
