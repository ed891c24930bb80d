import { readFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import type { Figure } from './figure.ts'
import type { Spread } from './numbers.ts'

export interface Machine {
  readonly cores: number
  readonly model: string
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
}

/** The machine on which the figures were measured. */
export function readMachine(): Machine {
  const model = /^model name\s*:\s*(.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]
  return {
    cores: availableParallelism(),
    model: model ?? process.arch,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
    node: process.version,
  }
}

/** The figures as a text table, each note below its line. */
export function renderTable(machine: Machine, figures: readonly Figure[]): string {
  const rows = [
    ['figure', 'median', 'range', 'target'],
    ...figures.map(({ name, value, unit, target = '' }) => [
      name,
      value === undefined ? '?' : `${show(value.median)}${suffix(unit)}`,
      value === undefined || value.min === value.max ? '' : range(value),
      target,
    ]),
  ]
  const widths = (rows[0] ?? []).map((_title, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const [title = '', ...rest] = lines
  const withNotes = rest.flatMap((line, index) => {
    const note = figures[index]?.note
    return note === undefined ? [line] : [line, `    ${note}`]
  })
  const { cores, model, memoryGiB, kernel, node } = machine
  return [
    `${cores} × ${model}, ${memoryGiB} GiB, Linux ${kernel}, Node ${node.slice(1)}`,
    '',
    title,
    '-'.repeat(title.length),
    ...withNotes,
    '',
  ].join('\n')
}

const range = ({ min, max }: Spread) => `[${show(min)} .. ${show(max)}]`

const suffix = (unit: Figure['unit']) => (unit === '' ? '' : ` ${unit}`)

/** Three significant digits. */
function show(value: number): string {
  if (!Number.isFinite(value)) return '?'
  const size = Math.abs(value)
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 3)
}
