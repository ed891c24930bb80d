import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ContentDaemon,
  emptyStore,
  planOf,
  removeFolder,
  sendFile,
  startContentDaemon,
  syncDisks,
} from './content.ts'
import { type Measure, median, single, spread } from './figure.ts'
import { packLayout, writeLayout } from './large-files.ts'

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
      value: spread(stops.map(({ longestMs }) => longestMs)),
      unit: 'ms',
      target: '≤ 50 ms',
      note: 'from the first byte of the file to the 201; waiting for a processor or the disk is part of it',
    },
    {
      name: 'content-many: most time of a processor between two turns of the loop',
      value: spread(stops.map(({ busiestMs }) => busiestMs)),
      unit: 'ms',
    },
    {
      name: 'content-many: longest stop while the bundle is deleted',
      value: spread(removals.map(({ longestMs }) => longestMs)),
      unit: 'ms',
      target: '≤ 50 ms',
    },
    {
      name: 'content-many: most time of a processor while the bundle is deleted',
      value: spread(removals.map(({ busiestMs }) => busiestMs)),
      unit: 'ms',
    },
    { name: 'content-many: time of the upload', value: spread(times), unit: 's' },
  ]
}

/** Of the event loop, as loop-delay.cjs writes it. */
interface LoopStops {
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

const path = '/v1/edge-mgmt/content/images'

/** A page of the list of all images of the host, of 10,000 images of its content, over HTTPS. */
export const measureImages: Measure = async (rig) => {
  const images = rig.isQuick ? 1_000 : 10_000
  const { rounds, pages } = rig.isQuick ? { rounds: 3, pages: 10 } : { rounds: 9, pages: 40 }
  rig.say('images: building a bundle')
  const folder = join(rig.folder, 'layout-of-images')
  const layout = writeLayout(folder, { images, layersPerImage: 1, layerBytes: 64 })
  const file = packLayout(layout, join(rig.folder, 'images.tar.zst'))
  removeFolder(folder)
  const delayFile = join(rig.folder, 'loop-delay')
  const daemon = await startContentDaemon(rig, {
    flags: ['--require', join(import.meta.dirname, 'loop-delay.cjs')],
    environment: { BENCH_LOOP_DELAY: delayFile },
  })
  const client = rig.client(daemon)
  try {
    const { token } = daemon
    rig.say('images: sending the bundle')
    await sendFile(daemon, { certificate: rig.certificate, token, file })
    syncDisks()
    const get = async (query: string) => {
      const reply = await client.send('GET', `${path}?${query}`, { token })
      if (reply.status !== 200) throw new Error(`the list answers ${reply.status}: ${reply.body.toString()}`)
      return reply
    }
    await readStops(daemon, delayFile)
    const joined = await get('limit=50')
    const { longestMs } = await readStops(daemon, delayFile)
    const { listmeta } = JSON.parse(joined.body.toString()) as {
      listmeta: { count: number; continue: string }
    }
    if (listmeta.count !== images) throw new Error(`the list has ${listmeta.count} images`)

    const queries = {
      first: 'limit=50',
      next: `limit=50&continue=${listmeta.continue}`,
      largest: 'limit=50&orderBy=sizeBytes=-1',
      filtered: 'limit=50&filters=locations.runtime=storeANDcanBePulledHere=false',
    }
    const measured: Record<keyof typeof queries, number[]> = {
      first: [],
      next: [],
      largest: [],
      filtered: [],
    }
    // Round -1 warms the code and does not count.
    for (let round = -1; round < rounds; round += 1)
      for (const name of Object.keys(queries) as (keyof typeof queries)[]) {
        rig.say(`images: round ${round + 1} of ${rounds}`)
        const times: number[] = []
        for (let page = 0; page < pages; page += 1) times.push((await get(queries[name])).durationMs)
        if (round >= 0) measured[name].push(median(times))
      }
    const count = images.toLocaleString('en')
    return [
      {
        name: `images: page of 50 of ${count} images`,
        value: spread(measured.first),
        unit: 'ms',
        target: '≤ 10 ms',
        note: 'over HTTPS, from the request to the last byte; median of each round',
      },
      { name: 'images: the page after it', value: spread(measured.next), unit: 'ms' },
      { name: 'images: ordered by size', value: spread(measured.largest), unit: 'ms' },
      { name: 'images: filtered', value: spread(measured.filtered), unit: 'ms' },
      {
        name: 'images: longest stop of the event loop while the list is joined',
        value: single(longestMs),
        unit: 'ms',
        target: '≤ 50 ms',
        note: `the first page after the upload took ${Math.round(joined.durationMs)} ms`,
      },
    ]
  } finally {
    client.close()
    await daemon.stop()
    rmSync(file)
  }
}
