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

  it('a daemon that does not run has the state of its unit, and its last errors are of the journal', () => {
    const page = pageOf(
      {
        'status.json': '',
        'edgehostd.service.txt':
          'ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=78\nInactiveEnterTimestamp=Sat 2026-11-28 10:00:00 UTC\n',
        'journal-warnings.txt': 'first\nsecond\n',
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

  it('what the daemon says of itself and of its cluster is told with its time and the next command', () => {
    const lines = wrong({
      'cluster-details.json': running,
      'attention.json': {
        items: [
          {
            ...{ code: 'PodsFailing', severity: 'error', message: 'the pack web: Crashing' },
            ...{ command: 'edgehostctl cluster logs web-1', sinceTimestamp: '2026-11-28T11:40:00Z' },
          },
          { code: 'HostLacking', severity: 'warning', message: 'socat is missing' },
        ],
      },
      'cluster-lifecycle.json': {
        clusterEvents: [
          {
            ...{ type: 'ClusterReady', status: 'False', reason: 'NotReady', message: 'no' },
            lastTransitionTime: '2026-11-28T11:41:00Z',
          },
          { type: 'HostRecorded', status: 'True' },
        ],
        edgeHostEvents: [],
      },
    })
    expect(lines).toEqual([
      '- error: the pack web: Crashing (since 2026-11-28T11:40:00Z) -> edgehostctl cluster logs web-1',
      '- warning: socat is missing',
      '- condition ClusterReady of the cluster is False (NotReady) since 2026-11-28T11:41:00Z: no',
    ])
  })

  it('what a daemon of another version leaves out is missing on the page, which tells the rest', () => {
    const lacking = pageOf({ 'cluster-details.json': { status: {} }, 'attention.json': {} })
    const nothingWrong = ['  nothing that edgehostd knows of']
    const ready = '- edgehostd 0.1.0 is ready; it runs since 2026-11-28T09:00:00Z'
    expect(sectionOf(lacking, 'What is wrong, and since when')).toEqual(nothingWrong)
    expect(sectionOf(lacking, 'State')).toEqual([ready, '- cluster , Kubernetes , revision : (), ; made'])
    expect(sectionOf(lacking, 'Last errors')).toEqual(['  none'])
    const foreign = pageOf({ 'cluster-details.json': 'not JSON', 'error-logs.json': '[]' })
    expect(sectionOf(foreign, 'What is wrong, and since when')).toEqual(nothingWrong)
    expect(sectionOf(foreign, 'State')).toEqual([ready, '- there is no cluster'])
    expect(sectionOf(foreign, 'Last errors')).toEqual(['  none'])
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
