import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  emptyStore,
  planOf,
  removeFolder,
  sendFile,
  startContentDaemon,
  syncDisks,
  type ContentDaemon,
} from './content-rig.ts'
import type { Measure } from './figure.ts'
import { packLayout, writeLayout } from './large-bundle.ts'
import { spread } from './numbers.ts'

// With 2000 MB, the default, 100,000 blobs: a thousand images of 98 layers, a configuration and a manifest.
const imagesPerMegabyte = 0.5
const layersPerImage = 98
const layerBytes = 512

/** The longest stop of the event loop while a bundle of many small blobs is uploaded and published. */
export const measureContentMany: Measure = async (rig) => {
  const images = Math.max(1, Math.round(planOf(rig).megabytes * imagesPerMegabyte))
  const rounds = rig.isQuick ? 1 : 3
  rig.say('content-many: building a bundle')
  const folder = join(rig.folder, 'layout-of-many')
  const layout = writeLayout(folder, { images, layersPerImage, layerBytes })
  const file = packLayout(layout, join(rig.folder, 'many.tar.zst'))
  removeFolder(folder)
  const delayFile = join(rig.folder, 'loop-delay')
  const daemon = await startContentDaemon(rig, {
    flags: ['--require', join(import.meta.dirname, 'loop-delay.cjs')],
    environment: { BENCH_LOOP_DELAY: delayFile },
  })
  const stops: LoopStops[] = []
  const removals: LoopStops[] = []
  const times: number[] = []
  try {
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`content-many: round ${round + 1} of ${rounds}`)
      syncDisks()
      await readStops(daemon, delayFile)
      const { token } = daemon
      const { durationMs } = await sendFile(daemon, { certificate: rig.certificate, token, file })
      stops.push(await readStops(daemon, delayFile))
      times.push(durationMs / 1_000)
      await emptyStore(rig, daemon)
      removals.push(await readStops(daemon, delayFile))
    }
  } finally {
    await daemon.stop()
    rmSync(file)
  }
  const count = layout.blobs.length.toLocaleString('en')
  return [
    {
      name: `content-many: longest stop of the event loop, ${count} blobs`,
      ...{ value: spread(stops.map(({ longestMs }) => longestMs)), unit: 'ms', target: '≤ 50 ms' },
      note: 'from the first byte of the file to the 201; waiting for a processor or the disk is part of it',
    },
    {
      name: 'content-many: most time of a processor between two turns of the loop',
      ...{ value: spread(stops.map(({ busiestMs }) => busiestMs)), unit: 'ms' },
    },
    {
      name: 'content-many: longest stop while the bundle is deleted',
      ...{ value: spread(removals.map(({ longestMs }) => longestMs)), unit: 'ms', target: '≤ 50 ms' },
    },
    {
      name: 'content-many: most time of a processor while the bundle is deleted',
      ...{ value: spread(removals.map(({ busiestMs }) => busiestMs)), unit: 'ms' },
    },
    { name: 'content-many: time of the upload', value: spread(times), unit: 's' },
  ]
}

/** Of the event loop, as loop-delay.cjs writes it. */
export interface LoopStops {
  readonly longestMs: number
  readonly busiestMs: number
}

/** Those since the last call. */
export async function readStops({ pid }: Pick<ContentDaemon, 'pid'>, file: string): Promise<LoopStops> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  while (!existsSync(file)) await sleep(5)
  return JSON.parse(readFileSync(file, 'utf8')) as LoopStops
}
