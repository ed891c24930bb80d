import { describe, expect, it } from 'vitest'
import type { ClusterRecord } from '../../../src/cluster/cluster-store.ts'
import { createAddEvent, type NewClusterEvent } from '../../../src/cluster/events/event-log.ts'
import { createDetails } from '../../../src/cluster/api/details.ts'
import { emptyHost, withoutSecrets } from '../../../src/cluster/loop/observed.ts'
import { createPreflight } from '../../../src/cluster/desired/preflight.ts'
import type { PreflightProblem } from '../../../src/cluster/desired/preflight-codes.ts'
import { pending } from '../../../src/cluster/loop/status.ts'
import type { KubernetesClient, KubernetesObject } from '../../../src/kubernetes/client.ts'
import type { Prepared } from '../../../src/cluster/desired/prepared.ts'
import { createHideOf } from '../../../src/definition/slots/secrets.ts'
import { wantedCluster } from '../../support/cluster-parts.ts'
import { piecesOf, sensitiveSamples, writtenForms } from '../../support/encoded-values.ts'
import { captureLog } from '../../support/https-server.ts'

const secret = 'canary 0907'

const forms = sensitiveSamples.flatMap((value) =>
  Object.entries(writtenForms(value)).map(([form, text]) => ({ value, form, text })),
)
const expectMasked = (shown: unknown, value: string) => {
  const text = JSON.stringify(shown)
  expect(text).toContain('********')
  // Quoted once more by JSON.
  for (const piece of piecesOf(value).flatMap((each) => [each, JSON.stringify(each).slice(1, -1)]))
    expect(text).not.toContain(piece)
}

describe('a sensitive value is masked in every form in which programs write it', () => {
  it.each(forms)('$form of $value is masked', ({ value, text }) => {
    expectMasked(createHideOf([value])(`before ${text} after`), value)
  })

  it.each(forms)(
    'details and nodes mask $form of $value wherever Kubernetes shows it',
    async ({ value, text }) => {
      const object = (kind: string, name: string, more: object): KubernetesObject => ({
        ...{ apiVersion: 'v1', kind, metadata: { name, namespace: 'shop' } },
        ...more,
      })
      const conditions = ['Ready', 'DiskPressure'].map((type) => ({
        ...{ type, status: 'False', reason: 'Bad', message: `it says ${text}` },
      }))
      const objects = [object('Node', 'node-1', { status: { conditions } })]
      const services = [object('Service', `web-${text}`, { spec: { clusterIP: '10.96.0.7' } })]
      const client = {
        list: async ({ kind }: { kind: string }) => (kind === 'Node' ? objects : services),
      } as unknown as KubernetesClient
      const step = {
        ...{ key: `pack p1/web chart shop/${text}`, title: `Install ${text}`, pack: '', state: 'failed' },
        ...{ failures: 1, reason: '', startedAt: 0, endedAt: 1, retryMs: 1 },
      } as never
      const wanted = wantedCluster({})
      const record = {
        ...{ uid: 'u', name: 'plant', createdAt: 0, modifiedAt: 0, posted: {}, sensitive: [value] },
        summary: { node: wanted.node, kubernetes: wanted.kubernetes },
      } as unknown as ClusterRecord
      const details = createDetails({
        ...{
          hostId: 'edge-1',
          architecture: 'amd64',
          version: '1',
          conditions: () => [],
          steps: () => [step],
          settings: () => undefined,
          troubles: () => [],
          deadline: () => undefined,
          pending: () => undefined,
          runningVersion: () => '',
          nics: () => [],
        },
        client: async () => client,
        clock: { now: () => 0, monotonic: () => 0 },
      })
      const bad = {
        ...pending,
        reason: text,
        health: { status: 'Unhealthy' as const, reason: `web: ${text}` },
      }
      const shown = await details.details(record, () => bad, undefined)
      expectMasked(shown, value)
      expect(shown.status.nodePools[0]?.nodes[0]?.health.reason).toContain('********')
      expect(shown.status.services[0]?.name).toContain('********')
      expect(shown.status.steps[0]?.key).toContain('********')
      const nodes = await details.nodes(record)
      expectMasked(nodes, value)
      expect(nodes.nodes[0]?.nodeHealth.map(({ message }) => message.includes('********'))).toEqual([
        true,
        true,
      ])
    },
  )

  it.each(forms)(
    'an event masks $form of $value in its message and in the key of its step',
    ({ value, text }) => {
      const added: NewClusterEvent[] = []
      const add = createAddEvent({ add: (event) => void added.push(event) })
      const record = { uid: 'u', sensitive: [value] } as unknown as ClusterRecord
      add(record, { reason: 'StepFailed', message: `helm: ${text}`, step: `pack p1/web chart shop/${text}` })
      expectMasked(added, value)
      expect(added[0]?.step).toContain('********')
    },
  )
})

it('the journal does not have the sensitive value that a failed check of the pre-flight quotes', async () => {
  const { log, lines } = captureLog()
  const fails = () => Promise.reject(new Error(`kubeadm does not take ${secret}`))
  const wanted = wantedCluster({})
  const collect = createPreflight({
    engine: { packs: [wanted.kubernetes.pack], preflight: fails, images: fails, contentOf: fails },
    host: { preflight: fails },
    content: { check: fails },
    log,
  })
  const variables = [{ profileUid: 'p1', name: 'password', value: secret, isSensitive: true }]
  const prepared = {
    desired: wanted,
    variables,
    problems: [],
    needs: [],
    derived: [],
    chartDigests: [],
  } as unknown as Prepared
  const { problems } = await collect(prepared, [], new AbortController().signal)
  expect(problems.map(({ code }) => code)).toContain('CheckFailed')
  const text = JSON.stringify(lines)
  expect(text).toContain('kubeadm does not take ********')
  expect(text).not.toContain(secret)
})

it('what the cluster needs of the content are its images, its charts and the programs of Kubernetes', async () => {
  const wanted = wantedCluster({})
  const collect = createPreflight({
    engine: {
      packs: [wanted.kubernetes.pack],
      preflight: async () => [],
      images: async () => ['pause:3'],
      contentOf: async () => ['sha256:kubelet'],
    },
    host: { preflight: async () => [] },
    content: { check: async () => ({ problems: [], needs: [], digests: ['sha256:pause'] }) },
    log: captureLog().log,
  })
  const prepared = {
    desired: wanted,
    variables: [],
    problems: [],
    needs: [],
    derived: [],
    chartDigests: ['sha256:chart'],
  }
  const { digests } = await collect(prepared as unknown as Prepared, [], new AbortController().signal)
  expect(digests).toEqual(['sha256:pause', 'sha256:chart', 'sha256:kubelet'])
})

it('programs that the operating system lacks are named first, of errors and of warnings', async () => {
  const wanted = wantedCluster({})
  const found = (code: PreflightProblem['code'], severity: PreflightProblem['severity']) => ({
    ...{ code, severity, message: code },
  })
  const collect = createPreflight({
    engine: {
      packs: [wanted.kubernetes.pack],
      preflight: async () => [found('ProgramMissing', 'error')],
      images: async () => [],
      contentOf: async () => [],
    },
    host: {
      preflight: async () => [
        ...[found('ClockNotSynchronized', 'warning'), found('HostProgramMissing', 'warning')],
        ...[found('PortTaken', 'error'), found('HostProgramMissing', 'error')],
      ],
    },
    content: { check: async () => ({ problems: [], digests: [], needs: [] }) },
    log: captureLog().log,
  })
  const prepared = {
    ...{ desired: wanted, variables: [], problems: [], images: [], derived: [], chartDigests: [] },
  } as unknown as Prepared
  const posted = [found('AddressInvalid', 'error')]
  const { problems } = await collect(prepared, posted, new AbortController().signal)
  expect(problems.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
    'error HostProgramMissing',
    'error AddressInvalid',
    'error PortTaken',
    'error ProgramMissing',
    'warning HostProgramMissing',
    'warning ClockNotSynchronized',
  ])
})

it('what Kubernetes says of a node and of packs does not have the sensitive values of the cluster', () => {
  const trouble = {
    reason: 'ImagePull',
    message: `no ${secret}`,
    namespace: secret,
    pod: `${secret}-1`,
    workload: `Deployment/${secret}`,
    container: 'a',
  } as const
  const observed = withoutSecrets(
    {
      ...emptyHost,
      engine: {
        ...emptyHost.engine,
        node: { name: 'box', isReady: false, message: `not ${secret}` },
        troubles: [trouble],
      },
      packs: new Map([
        [
          'web',
          {
            ...{
              appliedDigest: '',
              partDigest: '',
              doneSteps: [],
              charts: [],
              hasObjects: false,
              isAvailable: false,
              wasAvailable: false,
            },
            message: `cannot pull registry/${secret}`,
            troubles: [trouble],
          },
        ],
      ]),
    },
    createHideOf([secret]),
  )
  expect(observed.engine.node?.message).toBe('not ********')
  expect(observed.packs.get('web')?.message).toBe('cannot pull registry/********')
  for (const of of [observed.engine, observed.packs.get('web')])
    expect(of?.troubles).toEqual([
      {
        reason: 'ImagePull',
        message: 'no ********',
        namespace: '********',
        pod: '********-1',
        workload: 'Deployment/********',
        container: 'a',
      },
    ])
})
