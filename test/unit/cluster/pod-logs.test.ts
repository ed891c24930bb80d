import { describe, expect, it } from 'vitest'
import { createHideOf } from '../../../src/definition/slots/secrets.ts'
import { createPodLogs, type PodLogsQuestion } from '../../../src/cluster/api/pod-logs.ts'
import { KubernetesError, type KubernetesObject, type LogsOptions } from '../../../src/kubernetes/client.ts'

const crashed = { terminated: { exitCode: 1, reason: 'Error' } }
const pod: KubernetesObject = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-1', namespace: 'shop' } },
  spec: { initContainers: [{ name: 'set-up' }], containers: [{ name: 'log' }, { name: 'web' }] },
  status: {
    conditions: [{ type: 'Ready', status: 'False' }],
    initContainerStatuses: [{ name: 'set-up', state: { terminated: { exitCode: 0 } } }],
    containerStatuses: [
      { name: 'log', ready: true, state: { running: {} }, lastState: {} },
      { name: 'web', ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: crashed },
    ],
  },
}

/** Asks a cluster whose containers have written a text. */
function world(text = 'one\ntwo\n', object: KubernetesObject | undefined = pod) {
  const asked: LogsOptions[] = []
  const read = createPodLogs({
    client: () => ({
      get: async () => object,
      async logs(_pod, { signal, ...options }) {
        expect(signal).toBeDefined()
        asked.push(options)
        if (text.startsWith('refused: ')) throw new KubernetesError(400, 'BadRequest', text.slice(9))
        return text
      },
    }),
    hide: () => createHideOf(['correct horse battery']),
  })
  const ask = (more: Partial<PodLogsQuestion> = {}) => read({ namespace: 'shop', pod: 'web-1', ...more })
  return { ask, asked }
}

describe('the last lines of a container', () => {
  it('are of the container in trouble where none is named, of its instance that has ended', async () => {
    const { ask, asked } = world()
    expect(await ask()).toEqual({
      ...{ namespace: 'shop', pod: 'web-1', container: 'web', isPrevious: false, lines: ['one', 'two'] },
    })
    expect(asked).toMatchObject([{ container: 'web', isPrevious: false }])
  })

  it('are of the instance before, where the container has crashed, runs again and is not ready', async () => {
    const again = {
      ...pod,
      status: {
        conditions: [{ type: 'Ready', status: 'False' }],
        containerStatuses: [{ name: 'web', ready: false, state: { running: {} }, lastState: crashed }],
      },
    }
    expect(await world('x', again).ask()).toMatchObject({ container: 'web', isPrevious: true })
    expect(await world('x', again).ask({ isPrevious: false })).toMatchObject({ isPrevious: false })
  })

  it('are those of a named container, also of an init container', async () => {
    expect(await world().ask({ container: 'log' })).toMatchObject({ container: 'log' })
    expect(await world().ask({ container: 'set-up' })).toMatchObject({ container: 'set-up' })
  })

  it('are 20 at most, and 4 kB: the last ones', async () => {
    const lines = Array.from({ length: 50 }, (_, index) => `line ${index}`)
    expect((await world(`${lines.join('\n')}\n`).ask()).lines).toEqual(lines.slice(-20))
    const long = ['a'.repeat(3_000), 'b'.repeat(2_000), 'c'.repeat(1_000)]
    const cut = (await world(long.join('\n')).ask()).lines
    expect(cut.slice(1)).toEqual(long.slice(1))
    expect(cut[0]).toMatch(/^…a+$/)
    expect(Buffer.byteLength(cut.join('\n'))).toBeLessThanOrEqual(4_096 + 4)
    expect((await world('').ask()).lines).toEqual([])
  })

  it('have sensitive values and what looks like a secret masked, also where the beginning of a secret is not shown', async () => {
    const key = [
      '-----BEGIN PRIVATE KEY-----',
      ...Array.from({ length: 40 }, () => 'MIIEvQIBADAN'),
      '-----END PRIVATE KEY-----',
    ]
    const { lines } = await world(`say correct horse battery\nTOKEN=abcdef\n${key.join('\n')}\nend`).ask()
    expect(lines).toEqual(['say ********', 'TOKEN=********', '-----BEGIN PRIVATE KEY----- ********', 'end'])
  })

  it.each([
    [{ namespace: 'Shop' }, 'namespace'],
    [{ namespace: '..' }, 'namespace'],
    [{ pod: 'web/../../secrets' }, 'name'],
    [{ container: 'web&previous=true' }, 'container'],
  ])('are refused for names that are none: %j', async (more, field) => {
    const { ask, asked } = world()
    await expect(ask(more)).rejects.toMatchObject({ details: { field } })
    expect(asked).toEqual([])
  })

  it('are not found where there is no such pod, container or instance', async () => {
    const noLogs = (message: RegExp) =>
      expect.objectContaining({ message: expect.stringMatching(message) as string }) as Error
    const missing = createPodLogs({
      client: () => ({ get: async () => undefined, logs: async () => '' }),
      hide: () => (text) => text,
    })
    await expect(missing({ namespace: 'shop', pod: 'gone' })).rejects.toEqual(
      noLogs(/^the cluster has no pod shop\/gone$/),
    )
    await expect(world().ask({ container: 'db' })).rejects.toEqual(
      noLogs(/has no container db; it has set-up, log, web$/),
    )
    await expect(
      world('refused: previous terminated container "web" in pod "web-1" not found').ask(),
    ).rejects.toEqual(noLogs(/previous terminated container/))
  })

  it('say so while no API server answers', async () => {
    const silent = createPodLogs({ client: () => undefined, hide: () => (text) => text })
    await expect(silent({ namespace: 'shop', pod: 'web-1' })).rejects.toThrow(/does not answer/)
  })
})
