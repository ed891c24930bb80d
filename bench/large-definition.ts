import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { planBuild } from '../src/definition/build/build-plan.ts'
import { buildArchive } from '../src/definition/build/build.ts'
import { withDefaults } from '../src/archive/limits.ts'
import { noise } from './noise.ts'

const packCount = 20

/**
 * Builds a typical definition: little text, and charts that are compressed already. The same bytes on every machine.
 * @param folder an existing folder; it contains the definition twice for a while, and only the archive at the end
 * @param contentBytes total size of the charts
 * @returns path of the archive
 */
export async function buildLargeDefinition(folder: string, contentBytes: number): Promise<string> {
  requireRoom(folder, 2.1 * contentBytes)
  const parts = join(folder, 'large-parts')
  mkdirSync(parts)
  try {
    const packs = Array.from({ length: packCount }, (_, index) =>
      writePack(parts, `large-${index}`, Math.floor(contentBytes / packCount)),
    )
    const profile = join(parts, 'profile.json')
    writeFileSync(profile, JSON.stringify(profileOf(packs.map(({ name }) => name))))
    const folders = packs.map(({ path }) => path)
    const plan = planBuild({ profiles: [profile], packs: folders, limits: withDefaults() })
    const [problem] = plan.problems
    if (problem) throw new Error(`${problem.place} ${problem.message}`)
    return (await buildArchive({ plan, file: join(folder, 'large.tar.zst') })).file
  } finally {
    rmSync(parts, { recursive: true })
  }
}

/** @throws Error when the disk has less than these bytes free */
export function requireRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize < bytes) throw new Error(`${folder} needs ${(bytes / 1e9).toFixed(1)} GB of free disk`)
}

function writePack(folder: string, name: string, chartBytes: number) {
  const path = join(folder, name)
  const chart = `charts/${name}-1.0.0.tgz`
  mkdirSync(join(path, 'charts'), { recursive: true })
  writeFileSync(
    join(path, 'pack.json'),
    JSON.stringify({ name, version: '1.0.0', layer: 'addon', charts: [chart] }),
  )
  writeFileSync(join(path, 'values.yaml'), 'pack:\n  namespace: bench\n')
  writeNoise(join(path, chart), name, chartBytes)
  return { name, path }
}

/** Writes a new file of bytes that cannot be compressed, the same for the same seed. */
export function writeNoise(path: string, seed: string, sizeBytes: number): void {
  const file = openSync(path, 'wx')
  try {
    for (const chunk of noise(seed, sizeBytes)) writeSync(file, chunk)
  } finally {
    closeSync(file)
  }
}

const profileOf = (packs: readonly string[]) => ({
  metadata: { name: 'bench', uid: 'bench' },
  spec: {
    version: '1.0.0',
    template: {
      type: 'add-on',
      packs: packs.map((name) => ({ name, tag: '1.0.0', layer: 'addon', type: 'spectro', values: '' })),
    },
  },
})
