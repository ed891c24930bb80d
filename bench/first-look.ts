import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { bootHost } from './booted-host.ts'
import { ratioFigure, type Measure } from './figure.ts'
import type { FirstLook, FirstLookOrder } from './first-look-probe.ts'
import { spread } from './numbers.ts'
import type { Rig } from './rig.ts'

/** Lets a fresh process look at the host for the first time. */
export interface Looker {
  /** @param enter command in front, for example one that enters a namespace */
  look(order: FirstLookOrder, enter?: readonly string[]): Promise<FirstLook>
}

const execute = promisify(execFile)
const limitMs = 60_000
const root = join(import.meta.dirname, '..')
const loader = join(import.meta.dirname, 'cached-program.ts')

/**
 * The whole snapshot, each time in a fresh process, against the tools that an operator would ask, started one after
 * the other by the same process. Both on a host where each of the tools has an answer.
 */
export const measureFirstLook: Measure = async (rig) => {
  const rounds = rig.isQuick ? 5 : 40
  const looker = await createLooker(rig)
  rig.say('first-look: booting a host')
  const host = await bootHost([root, rig.folder, dirname(process.execPath)])
  const looks: FirstLook[] = []
  try {
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`first-look: round ${round + 1} of ${rounds}`)
      looks.push(await looker.look({ first: round % 2 === 0 ? 'tools' : 'look' }, host.enter))
    }
  } finally {
    await host.unplug()
  }
  const own = looks.map(({ lookMs }) => lookMs)
  const base = looks.map(({ toolsMs }) => toolsMs)
  const { missing = [], refusing = [] } = looks[0] ?? {}
  const note = [
    `${rounds} fresh processes on a booted host`,
    ...(missing.length > 0 ? [`not here: ${missing.join(', ')}`] : []),
    ...(refusing.length > 0 ? [`refuses to answer: ${refusing.join(', ')}`] : []),
  ].join('; ')
  return [
    ratioFigure('first look ÷ six tools one by one', own, base, { target: '≤ 1.0', note }),
    { name: 'first look', value: spread(own), unit: 'ms' },
    { name: 'the tools', value: spread(base), unit: 'ms' },
  ]
}

/** Bundles the probe as the daemon is bundled, with a compile cache like the daemon's. */
export async function createLooker({ folder, flags }: Rig): Promise<Looker> {
  const place = join(folder, 'first-look')
  mkdirSync(place, { recursive: true })
  const program = join(place, 'probe.cjs')
  await build({
    entryPoints: [join(import.meta.dirname, 'first-look-probe.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: 'warning',
  })
  const run = async (order: FirstLookOrder, enter: readonly string[] = []) => {
    const command = [...enter, process.execPath, ...flags, loader, program, JSON.stringify(order)]
    const [first = '', ...args] = command
    const { stdout } = await execute(first, args, { timeout: limitMs, env: { PATH: process.env.PATH } })
    return stdout
  }
  // The daemon's cache is taken after its first look too.
  await run({ first: 'look' })
  return { look: async (order, enter) => JSON.parse(await run(order, enter)) as FirstLook }
}
