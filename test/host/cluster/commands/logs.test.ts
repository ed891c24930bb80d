import { afterAll, describe, expect, it } from 'vitest'
import type { ClusterTrouble } from '../../../../src/cluster/schemas.ts'
import { applicationsOf, detailsOf, json } from '../../../support/played-cluster.ts'
import { createPlayedCtl } from '../../../support/played-ctl.ts'

const cluster = '/v1/edge-mgmt/cluster'
const details = `GET ${cluster}/details`

const world = createPlayedCtl()
const { run } = world
afterAll(() => world.stop())

const place = { namespace: 'shop', pod: 'web-1' } as const
const troubles: ClusterTrouble[] = [
  { pack: '', reason: 'PodsNotMade', message: 'exceeded quota', namespace: 'kube-system', pod: 'coredns' },
  { pack: 'web', reason: 'NoRoom', message: 'no node takes it', namespace: 'shop', pod: 'db-0' },
  {
    ...place,
    pack: 'web',
    reason: 'Crashing',
    message: 'it ended with exit code 3',
    workload: 'Deployment/web',
    container: 'app',
    sinceTimestamp: '2026-01-31T08:00:00Z',
  },
]
const withTroubles = detailsOf({ troubles })
const lines = { ...place, container: 'app', isPrevious: false, lines: ['one', 'no \u001b[31mdatabase'] }
const logs = (query = '') => `GET ${cluster}/pods/shop/web-1/logs${query}`

describe('cluster logs', () => {
  it('shows the lines of a named pod; nothing in them moves the cursor', async () => {
    const ended = await run({ [logs()]: json(200, lines) }, ['logs', 'web-1', '--namespace', 'shop'])
    expect(ended).toMatchObject({ exitCode: 0, stderr: 'shop/web-1, container app:\n' })
    expect(ended.stdout).toMatch(/^one\nno .*database\n$/)
    expect(ended.stdout).not.toContain('\u001b')
  })

  it('without a pod shows those of the first in trouble that has a container', async () => {
    const answers = { [details]: json(200, withTroubles), [logs()]: json(200, lines) }
    const ended = await run(answers, ['logs'])
    expect(ended.stdout).toContain('one\n')
    const byName = await run(answers, ['logs', 'web-1'])
    expect(byName.stdout).toContain('one\n')
  })

  it('asks for the container and the instance that are named', async () => {
    const before = { ...lines, isPrevious: true, lines: [] }
    const ended = await run({ [logs()]: json(200, before) }, [
      ...['logs', 'web-1', '--namespace', 'shop', '--container', 'app', '--previous'],
    ])
    expect(ended.asked[0]?.url).toBe(logs('?container=app&previous=true'))
    expect(ended.stderr).toBe(
      'shop/web-1, container app, before its last start: it has written nothing; if it has not started yet, edgehostctl cluster get says why\n',
    )
  })

  it('says that no pod is in trouble', async () => {
    const ended = await run({ [details]: json(200, detailsOf()) }, ['logs'])
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toContain('no pod of the cluster is in trouble; name one')
  })
})

it('cluster get has a table of pods that do not run, and the time after which the revision is taken back', async () => {
  const deadline = { timestamp: '2026-01-31T08:10:00.000Z', leftSeconds: 252, action: 'takenBack' } as const
  const ended = await run(
    {
      [details]: json(200, detailsOf({ troubles, deadline })),
      [`GET ${cluster}/applications`]: json(200, applicationsOf('Applied', 'waits')),
    },
    ['get'],
  )
  expect(ended.stdout).toMatch(
    /Deadline: the revision is taken back in 4 min 12 s unless it runs, at 2026-01-31/,
  )
  expect(ended.stdout).toMatch(/^POD +CONTAINER +PACK +SINCE +REASON$/m)
  expect(ended.stdout).toMatch(/^shop\/web-1 +app +web +2026-01-31 .*Crashing: it ended with exit code 3$/m)
})
