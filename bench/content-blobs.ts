import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  emptyStore,
  planOf,
  removeFolder,
  sendBlobs,
  startContentBaseline,
  startContentDaemon,
  syncDisks,
} from './content-rig.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { writeLayout, type BenchLayout } from './large-bundle.ts'
import { requireRoom } from './large-definition.ts'
import { single, spread } from './numbers.ts'
import { startProbe } from './probe.ts'
import type { WrittenArgs, WrittenResult } from './written-probe.ts'

/**
 * Upload of a bundle blob by blob over one connection, until it is published, against a server that hashes and writes each
 * body; then a bundle of which 1 % of the bytes are in other blobs.
 */
export const measureContentBlobs: Measure = async (rig): Promise<Figure[]> => {
  const plan = planOf(rig)
  const rounds = rig.isQuick ? 2 : 3
  // The layout, the store and the folder of the baseline.
  requireRoom(rig.folder, 3.1 * plan.megabytes * 1e6 + 1e9)
  rig.say('content-blobs: building bundles')
  const folder = join(rig.folder, 'layout')
  const layout = writeLayout(folder, plan)
  const changedLayers = Math.round((plan.images * plan.layersPerImage) / 100)
  const changed = writeLayout(folder, { ...plan, changedLayers }, 'changed-index.json')
  const daemon = await startContentDaemon(rig)
  const bare = await startContentBaseline(rig)
  const { certificate } = rig
  const sending = ({ index, blobs }: BenchLayout) => {
    const list = join(rig.folder, 'blobs.json')
    writeFileSync(list, JSON.stringify(blobs))
    return { certificate, index, blobs: list }
  }
  const { port, token, pid } = daemon
  const [own, base]: [number[], number[]] = [[], []]
  const sides = [
    async () => {
      const { durationMs } = await sendBlobs({ ...sending(layout), port: bare.port, token: '' })
      base.push(durationMs / 1_000)
      removeFolder(bare.folder)
    },
    async () => {
      await emptyStore(rig, daemon)
      syncDisks()
      own.push((await sendBlobs({ ...sending(layout), port, token })).durationMs / 1_000)
    },
  ]
  try {
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`content-blobs: round ${round + 1} of ${rounds}`)
      // The order changes each round.
      for (const send of round % 2 === 0 ? sides : sides.toReversed()) {
        syncDisks()
        await send()
      }
    }
    rig.say('content-blobs: a bundle with other blobs')
    const probe = await startProbe<WrittenResult>('written-probe.ts', { pid } satisfies WrittenArgs)
    const { sentBytes, sentBlobs } = await sendBlobs({ ...sending(changed), port, token })
    const { bytes: writtenBytes } = await probe.stop()
    await emptyStore(rig, daemon)
    const percent = (bytes: number) => single((bytes / changed.sizeBytes) * 100)
    const what = `${changedLayers} of ${plan.images * plan.layersPerImage} layers are other ones; ${sentBlobs} blobs were sent`
    return [
      ratioFigure('content-blobs: time ÷ hashing and writing alone', own, base, {
        target: '≤ 1.20',
        note: `${rounds} pairs of ${plan.megabytes} MB in ${layout.blobs.length} blobs, with publication and sync`,
      }),
      {
        name: 'content-blobs: 1 % in other blobs, sent',
        ...{ value: percent(sentBytes), unit: '%', target: '≤ 3 %', note: what },
      },
      {
        name: 'content-blobs: 1 % in other blobs, written',
        ...{ value: percent(writtenBytes), unit: '%', target: '≤ 3 %' },
        note: 'write_bytes of the daemon and its children: content, database, record',
      },
      { name: 'content-blobs: time', value: spread(own), unit: 's' },
      { name: 'content-blobs: time of the baseline', value: spread(base), unit: 's' },
    ]
  } finally {
    await Promise.all([daemon.stop(), bare.stop()])
    removeFolder(folder)
  }
}
