import { spawnSync } from 'node:child_process'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ratioFigure, type Measure } from './figure.ts'
import { spread } from './numbers.ts'
import { writePacks, writeProfile } from './packs.ts'

const packCount = 200

/** `definition build` of 200 packs, from its start to its end, against tar and zstd on the same files. */
export const measureDefinition: Measure = async (rig) => {
  const program = join(import.meta.dirname, '..', 'dist', 'definition.cjs')
  const rounds = rig.isQuick ? 2 : 10
  const folder = join(rig.folder, 'packs')
  const profile = join(rig.folder, 'profile.json')
  rig.say('definition: writing packs')
  const packs = writePacks(folder, packCount)
  writeProfile(profile, packCount)
  const ours = join(rig.folder, 'ours.tar.zst')
  const theirs = join(rig.folder, 'theirs.tar.zst')
  const lines = {
    ours: [
      process.execPath,
      program,
      `--profile=${profile}`,
      ...packs.map((pack) => `--pack=${pack}`),
      `--file=${ours}`,
      '--',
      'build',
    ],
    // The shell ends when both have; what is written is on the disk, as ours is.
    theirs: [
      'sh',
      '-c',
      `tar -C '${rig.folder}' -cf - packs profile.json | zstd -q -f -o '${theirs}' - && sync '${theirs}'`,
    ],
  } as const
  const times: Record<keyof typeof lines, number[]> = { ours: [], theirs: [] }
  // One each to have the files in the page cache.
  for (const name of ['theirs', 'ours'] as const) runOnce(lines[name])
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`definition: round ${round + 1} of ${rounds}`)
    const names = Object.keys(lines) as (keyof typeof lines)[]
    for (const name of round % 2 === 0 ? names : names.reverse()) times[name].push(runOnce(lines[name]))
  }
  const sizes = [ours, theirs].map((file) => `${(statSync(file).size / 1e6).toFixed(1)} MB`)
  for (const path of [folder, profile, ours, theirs]) rmSync(path, { recursive: true })
  return [
    ratioFigure(`definition build of ${packCount} packs ÷ tar | zstd`, times.ours, times.theirs, {
      target: '≤ 1.50',
      note: `${rounds} rounds; ${sizes.join(' and ')}`,
    }),
    { name: 'tar | zstd', value: spread(times.theirs), unit: 'ms' },
  ]
}

function runOnce([program, ...args]: readonly [string, ...string[]]): number {
  const start = performance.now()
  const { status, stderr } = spawnSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  if (status !== 0) throw new Error(`${program}: ${stderr.toString()}`)
  return performance.now() - start
}
