import { describe, expect, it } from 'vitest'
import { eventOf } from '../../../../src/cluster/engine/step-lines.ts'
import { whilePullsAreEarly } from '../../../../src/cluster/engine/initialise.ts'

// Of containerd 1.6.20, a moment after a restart with the containers of a cluster.
const starting =
  'failed to create new CRI runtime service: validate service connection: validate CRI v1 runtime API for endpoint "unix:///run/edgehostd-containerd/containerd.sock": rpc error: code = Unknown desc = server is not initialized yet'
const refused = 'failed to pull image "x": dial tcp 127.0.0.1:5081: connect: connection refused'

/** @param ends what each pull gives; the last one from then on */
async function pulled(...ends: readonly (string | undefined)[]) {
  const lines: string[] = []
  let pulls = 0
  const failed = await whilePullsAreEarly(
    async () => ends[Math.min(pulls++, ends.length - 1)],
    (line) => void lines.push(line),
    0,
  )
  return { failed, pulls, lines: lines.length }
}

describe('images of Kubernetes while the registry of the host or containerd is away', () => {
  it('are pulled again until it is there, as after a restart of the daemon', async () => {
    expect(await pulled(refused, refused, undefined)).toEqual({ failed: undefined, pulls: 3, lines: 2 })
  })
  it('are not said to be pulled meanwhile', async () => {
    const lines: string[] = []
    const ends = [refused, undefined]
    await whilePullsAreEarly(
      async () => ends.shift(),
      (line) => void lines.push(line),
      0,
    )
    expect(lines.map((line) => eventOf({ key: 'pull-images' }, line))).toEqual([
      {
        reason: 'StepProgress',
        message:
          'the registry of this host or containerd does not answer; the images are pulled again in a moment',
      },
    ])
  })
  it('are pulled again while containerd finds its containers anew', async () => {
    expect(await pulled(starting, refused, undefined)).toEqual({ failed: undefined, pulls: 3, lines: 2 })
  })
  it('fail at once where the registry answers', async () => {
    expect(await pulled('x: not found')).toEqual({ failed: 'x: not found', pulls: 1, lines: 0 })
  })
  it('fail where it stays away', async () => {
    expect(await pulled(refused)).toEqual({ failed: refused, pulls: 20, lines: 19 })
  })
})
