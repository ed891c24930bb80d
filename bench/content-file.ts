import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  emptyStore,
  planOf,
  removeFolder,
  sendFile,
  startContentBaseline,
  startContentDaemon,
  syncDisks,
  type StartOptions,
} from './content-rig.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { packLayout, writeLayout } from './large-bundle.ts'
import { requireRoom } from './large-definition.ts'
import { single, spread } from './numbers.ts'
import { startProbe } from './probe.ts'
import type { Rig } from './rig.ts'
import type { RssArgs, RssResult } from './rss-probe.ts'
import { readRssMiB, readTreeMiB } from './usage.ts'

// OPENSSL_ia32cap(3): bit 29 of the second word is that of the SHA instructions.
const shaVariable = 'OPENSSL_ia32cap'
const withoutSha = ':~0x20000000'

/** Upload of a bundle as a file, until it is published, against the same TLS and the programs of the system. */
export const measureContentFile: Measure = async (rig): Promise<Figure[]> => {
  const plan = planOf(rig)
  const rounds = rig.isQuick ? 2 : 3
  // The layout, its archive, the store and the folder of the baseline.
  requireRoom(rig.folder, 4.1 * plan.megabytes * 1e6 + 1e9)
  rig.say('content-file: building a bundle')
  const folder = join(rig.folder, 'layout')
  const file = packLayout(writeLayout(folder, plan), join(rig.folder, 'bundle.tar.zst'))
  removeFolder(folder)
  const what = `${rounds} pairs of ${plan.megabytes} MB, from the first byte to the 201`
  try {
    const fast = await compare(rig, file, { rounds, isShaUsed: true })
    const slow = await compare(rig, file, { rounds, isShaUsed: false })
    const { daemonMiB, treeMiB, treePssMiB, idleMiB, idlePssMiB } = await measureMemory(rig, file)
    return [
      ratioFigure('content-file: time ÷ tee, openssl dgst, zstd, tar, sync', fast.own, fast.base, {
        ...{ target: '≤ 1.30', note: what },
      }),
      ratioFigure('content-file: the same without SHA instructions', slow.own, slow.base, {
        ...{ target: '≤ 1.60', note: `${shaVariable}=${withoutSha} for all processes of both sides` },
      }),
      {
        name: 'content-file: memory of daemon and children above idle, peak',
        value: single(treeMiB - idleMiB),
        ...{ unit: 'MiB', target: '≤ 95 (100 MB)' },
        note: [
          `RSS, window of 8 MiB; each shared page counted once ${(treePssMiB - idlePssMiB).toFixed(0)} MiB`,
          `the daemon alone ${(daemonMiB - idleMiB).toFixed(0)} MiB`,
          `idle, after a login, ${idleMiB.toFixed(0)} MiB`,
        ].join('; '),
      },
      { name: 'content-file: time', value: spread(fast.own), unit: 's' },
      { name: 'content-file: time of the baseline', value: spread(fast.base), unit: 's' },
    ]
  } finally {
    removeFolder(file)
  }
}

interface Times {
  /** Seconds. */
  readonly own: readonly number[]
  readonly base: readonly number[]
}

async function compare(
  rig: Rig,
  file: string,
  { rounds, isShaUsed }: { readonly rounds: number; readonly isShaUsed: boolean },
): Promise<Times> {
  const options: StartOptions = isShaUsed ? {} : buildWithoutSha(rig)
  const daemon = await startContentDaemon(rig, options)
  const bare = await startContentBaseline(rig, options.environment)
  const { certificate } = rig
  const [own, base]: [number[], number[]] = [[], []]
  const sides = [
    async () => {
      const sent = await sendFile(bare, { certificate, file, token: '', isBare: true })
      base.push(sent.durationMs / 1_000)
      removeFolder(bare.folder)
    },
    async () => {
      own.push((await sendFile(daemon, { certificate, file, token: daemon.token })).durationMs / 1_000)
      await emptyStore(rig, daemon)
    },
  ]
  try {
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`content-file${isShaUsed ? '' : ', without SHA'}: round ${round + 1} of ${rounds}`)
      // The order changes each round.
      for (const send of round % 2 === 0 ? sides : sides.toReversed()) {
        syncDisks()
        await send()
      }
    }
  } finally {
    await Promise.all([daemon.stop(), bare.stop()])
  }
  return { own, base }
}

/** An upload of its own, since reading /proc would delay the others. */
async function measureMemory(rig: Rig, file: string) {
  rig.say('content-file: memory')
  const { certificate } = rig
  const daemon = await startContentDaemon(rig)
  try {
    const [idleMiB, idlePssMiB] = [readRssMiB(daemon.pid), readTreeMiB(daemon.pid)]
    const probe = await startProbe<RssResult>('rss-probe.ts', { pid: daemon.pid } satisfies RssArgs)
    await sendFile(daemon, { certificate, file, token: daemon.token })
    const seen = await probe.stop()
    await emptyStore(rig, daemon)
    return { ...seen, idleMiB, idlePssMiB }
  } finally {
    await daemon.stop()
  }
}

/**
 * A copy of the build whose programs get the variable too: the daemon passes nothing of its environment on to them.
 * @throws Error when the place in the bundle is not found
 */
function buildWithoutSha({ entry, folder }: Rig): StartOptions {
  const copy = join(folder, 'build-without-sha')
  cpSync(dirname(entry), copy, { recursive: true })
  const daemon = join(copy, 'daemon.cjs')
  const bundle = readFileSync(daemon, 'utf8')
  const parts = bundle.split(/(?<=[,{]LC_ALL:\s?"C",)/)
  if (parts.length !== 2)
    throw new Error(`${daemon} has ${parts.length - 1} environments of programs, not one`)
  writeFileSync(daemon, parts.join(`${shaVariable}:${JSON.stringify(withoutSha)},`))
  return { entry: join(copy, basename(entry)), environment: { [shaVariable]: withoutSha } }
}
