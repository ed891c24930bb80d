import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ratioFigure, type Measure } from './figure.ts'
import { spread } from './numbers.ts'

/** Run time of edgehostctl, for commands that contact no host, against `node -e 0`. */
export const measureCtlStart: Measure = async (rig) => {
  const program = join(import.meta.dirname, '..', 'dist', 'edgehostctl.cjs')
  const rounds = rig.isQuick ? 5 : 40
  const lines = { bare: ['-e', '0'], version: [program, 'version'], help: [program, 'help'] }
  const times: Record<keyof typeof lines, number[]> = { bare: [], version: [], help: [] }
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`ctl-start: round ${round + 1} of ${rounds}`)
    const names = Object.keys(lines) as (keyof typeof lines)[]
    for (const name of round % 2 === 0 ? names : names.reverse()) times[name].push(runOnce(lines[name]))
  }
  const remarks = { target: '≤ 1.30', note: `${rounds} rounds` }
  return [
    ratioFigure('edgehostctl version ÷ node -e 0', times.version, times.bare, remarks),
    ratioFigure('edgehostctl help ÷ node -e 0', times.help, times.bare, remarks),
    { name: 'node -e 0', value: spread(times.bare), unit: 'ms' },
  ]
}

function runOnce(args: readonly string[]): number {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr.toString()}`)
  return performance.now() - start
}
