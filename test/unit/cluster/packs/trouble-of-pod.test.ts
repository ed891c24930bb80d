import { describe, expect, it } from 'vitest'
import { troubleOfPod } from '../../../../src/cluster/packs/objects.ts'

const troubleOf = (status: object) =>
  troubleOfPod({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-1' }, status })
const waiting = (reason: string, message?: string) => ({ waiting: { reason, message } })

describe('why a pod does not run', () => {
  it.each([
    ['it runs', { containerStatuses: [{ name: 'web', state: { running: {} } }] }, ''],
    ['it is on its way', { containerStatuses: [{ name: 'web', state: waiting('ContainerCreating') }] }, ''],
    ['it has no status yet', {}, ''],
    [
      'its image is missing',
      {
        containerStatuses: [
          { name: 'web', state: waiting('ImagePullBackOff', 'Back-off pulling image "x"') },
        ],
      },
      'pod web-1: container web: ImagePullBackOff: Back-off pulling image "x"',
    ],
    [
      'its first container crashes',
      {
        initContainerStatuses: [
          {
            ...{ name: 'set-up', state: waiting('CrashLoopBackOff', 'back-off 40s') },
            lastState: { terminated: { exitCode: 3, message: 'no database\n' } },
          },
        ],
        containerStatuses: [{ name: 'web', state: waiting('PodInitializing') }],
      },
      'pod web-1: container set-up: CrashLoopBackOff: back-off 40s: it ended with exit code 3: no database',
    ],
    [
      'its container has ended with an error',
      { containerStatuses: [{ name: 'job', state: { terminated: { exitCode: 2, message: 'bad row' } } }] },
      'pod web-1: container job: it ended with exit code 2: bad row',
    ],
    [
      'its container has done its work',
      { containerStatuses: [{ name: 'job', state: { terminated: { exitCode: 0 } } }] },
      '',
    ],
    [
      'no node takes it',
      {
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            message: '0/1 nodes are available: 1 Insufficient memory.',
          },
        ],
      },
      'pod web-1: no node takes it: 0/1 nodes are available: 1 Insufficient memory.',
    ],
    [
      'it was evicted',
      { phase: 'Failed', message: 'The node was low on memory.' },
      'pod web-1: The node was low on memory.',
    ],
  ])('%s', (_, status, trouble) => {
    expect(troubleOf(status)).toBe(trouble)
  })
})
