import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beginStream, detailsOf, eventOf, json, streamOf } from './played-cluster.ts'
import { createPlayedCtl, type Answers } from './played-ctl.ts'
import { serviceStatus } from './test-edge.ts'

export const clusterPath = '/v1/edge-mgmt/cluster'
export const slotPath = '/v1/edge-mgmt/clusters/archive/update'
export const stream = 'GET /v1/edge-mgmt/events/stream'
export const upload = 'POST /v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
/** Handles of definitions: the present one, the one in the slot, the one that was uploaded. */
export const [present, next, sent] = ['/definitions/1', '/definitions/2', '/definitions/3'] as const

export type Answer = Answers[string]

/** A revision as the API lists it. */
export const revisionOf = (revision: number, outcome: string, more: object = {}) => ({
  ...{
    revision,
    outcome,
    by: 'ada',
    origin: 'update',
    kubernetesVersion: '1.34.4',
    isActive: outcome === 'good',
  },
  definition: { name: 'shop', version: '1.0.0' },
  creationTimestamp: '2026-01-31T08:00:00.000Z',
  ...more,
})
export const diff = {
  ...{ isEmpty: false, definition: { from: 'shop 1.0.0', to: 'shop 1.1.0' }, variables: [], settings: {} },
  packs: [
    {
      ...{ id: 'p1/web', name: 'web', change: 'changed', fromVersion: '1.0.0', toVersion: '1.1.0' },
      ...{
        fields: ['version'],
        manifests: [],
        charts: [],
        namespaces: [],
        isApplied: true,
        isDrained: false,
      },
    },
  ],
  effects: [{ target: 'pack', restarts: ['pods of it'], message: 'p1/web is applied' }],
}
/** The reply to a dry run. */
export const tried = { isPossible: true, isChanged: true, isHeld: false, problems: [], plan: [], diff }
/** A definition in the slot, or none. */
export const slotOf = (archiveUploadPath: string, more: object = {}) =>
  json(200, {
    archiveUploadPath,
    clusterProfileDetails: [
      {
        ...{ profileUid: 'p2', profileName: 'shop', packs: [] },
        variables: [{ name: 'replicas' }, { name: 'password', isSensitive: true }],
      },
    ],
    ...(archiveUploadPath === '' ? {} : { fileName: 'other.tgz', uploadedAt: '2026-01-30T08:00:00.000Z' }),
    ...more,
  })
export const noContent =
  (etag: string): Answer =>
  (_request, response) =>
    void response.writeHead(204, { etag }).end()
/** Answers a dry run and the write behind one path. */
export const write =
  (found: unknown, answer: Answer): Answer =>
  (request, response, body) =>
    (request.url?.includes('dryRun=true') ? json(200, found) : answer)(request, response, body)

/** A host whose cluster runs with its first revision. */
export const host = (more: Answers = {}): Answers => ({
  [`GET ${clusterPath}`]: (_request, response) =>
    void response
      .writeHead(200, { 'content-type': 'application/json', etag: '"one"' })
      .end(JSON.stringify({ metadata: { name: 'shop' }, spec: { archiveUploadPath: present } })),
  [`GET ${clusterPath}/revisions`]: json(200, { items: [revisionOf(1, 'good')] }),
  [`GET ${clusterPath}/details`]: json(200, detailsOf()),
  [`GET ${slotPath}/details`]: slotOf(''),
  'GET /v1/edge-mgmt/edgehosts/current/status': json(200, serviceStatus('airgap')),
  [`PUT ${clusterPath}/profiles`]: write(tried, noContent('"two"')),
  ...more,
})

/** A host that applies revision 2: its events, and what becomes of it. */
export function applying(outcome: string, reason: string, more: object = {}): Answers {
  let end: string | undefined
  return host({
    [`GET ${slotPath}/details`]: slotOf(next),
    [`GET ${clusterPath}/revisions`]: (...args) =>
      json(200, {
        items:
          end === undefined
            ? [revisionOf(1, 'good')]
            : [revisionOf(2, end, more), revisionOf(1, 'good', { isActive: end !== 'good' })],
      })(...args),
    [`PUT ${clusterPath}/profiles`]: write(tried, (...args) => {
      end = 'waiting'
      noContent('"two"')(...args)
    }),
    [stream]: (_request, response) => {
      const old = [eventOf(1, 'Accepted', 'comes'), eventOf(2, 'Running', 'ran long ago')]
      beginStream(response).write(
        streamOf(...old, eventOf(3, 'UpdateAccepted', 'revision 2 of ada: shop 1.1.0')),
      )
      setTimeout(() => {
        end = 'applying'
        response.write(streamOf(eventOf(4, 'UpdateStarted', 'revision 2 of ada: shop 1.1.0')))
      }, 100)
      setTimeout(() => {
        end = outcome
        response.write(streamOf(eventOf(5, reason, 'the end')))
      }, 700)
    },
  })
}

/** As `createPlayedCtl`, with a definition to upload. */
export function createChangingHost() {
  const played = createPlayedCtl()
  const { ctl, play, asked } = played
  const definition = join(ctl.home, 'shop.tgz')
  writeFileSync(definition, 'an archive')

  return {
    ...{ ...played, definition },
    writes: () => asked().filter(({ url }) => /^(PUT|POST) /.test(url) && !url.includes('dryRun')),
    bodyOf: (url: string) => JSON.parse(asked().findLast((each) => each.url === url)?.body ?? '') as unknown,
    /** As `run`, on a terminal, with what is typed there. */
    async runOnTerminal(answers: Answers, args: readonly string[], typed: string) {
      const path = await play(answers)
      const line = [process.execPath, ctl.program, `--socket=${path}`, 'cluster', ...args].join(' ')
      const { stdout, exitCode } = await execa('script', ['-qec', line, '/dev/null'], {
        ...{ input: typed, reject: false, extendEnv: false, timeout: 20_000 },
        env: { PATH: '/usr/bin:/bin', HOME: ctl.home, TERM: 'xterm', NO_COLOR: '1' },
      })
      return { stdout: stdout.replaceAll('\r', ''), exitCode }
    },
  }
}
