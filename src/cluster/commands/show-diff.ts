import { escapeInvisible } from '../../base/printable.ts'
import { masked } from '../../base/mask.ts'
import { renderFacts, type Fact, type Paper } from '../../ctl/facts.ts'
import { shortKey } from '../../ctl/ssh-keys.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import type { ClusterChangeDryRun } from '../change/schemas.ts'
import { renderProblems } from '../../ctl/problems.ts'

type Diff = NonNullable<ClusterChangeDryRun['diff']>
type PackChange = Diff['packs'][number]
type VariableChange = Diff['variables'][number]
type Effect = Diff['effects'][number]

const longestValue = 200

const packLayout: readonly Column<PackChange>[] = [
  { title: 'PACK', read: ({ name, displayName }) => displayName ?? name, isFlexible: true },
  {
    title: 'VERSION',
    read: ({ fromVersion, toVersion }) => fromTo(fromVersion, toVersion),
    isFlexible: true,
  },
  { title: 'CHANGE', read: ({ change }) => change },
  { title: 'OF IT', read: partsOf, isFlexible: true },
]

const variableLayout: readonly Column<VariableChange>[] = [
  { title: 'VARIABLE', read: ({ name }) => name, isFlexible: true },
  { title: 'CHANGE', read: ({ change }) => change },
  { title: 'FROM', read: (change) => valueOf(change, 'from'), isFlexible: true },
  { title: 'TO', read: (change) => valueOf(change, 'to'), isFlexible: true },
]

const effectLayout: readonly Column<Effect>[] = [
  { title: 'WHAT IS DONE', read: ({ message }) => message, isFlexible: true },
  { title: 'RESTARTS', read: ({ restarts }) => restarts.join(', '), isFlexible: true },
]

/**
 * A change of the cluster, for people. Pure.
 * @param hints further lines, such as what takes the place of what
 */
export function renderChange(found: ClusterChangeDryRun, hints: readonly string[], paper: Paper): string {
  const { problems, diff } = found
  return [
    renderFacts([...verdictOf(found), ...(diff ? factsOf(diff) : []), ...hintsOf(hints)], paper),
    ...(problems.length > 0 ? [renderProblems(problems, paper)] : []),
    ...(diff ? tablesOf(diff, paper) : []),
  ].join('\n')
}

function verdictOf({ isPossible, isHeld }: ClusterChangeDryRun): Fact[] {
  if (isPossible) return [{ label: 'Pre-flight', lines: ['the change is possible'], mood: 'good' }]
  return [
    isHeld
      ? {
          label: 'Pre-flight',
          lines: ['required variables have no value: give them with --set or --set-file'],
          mood: 'bad',
        }
      : { label: 'Pre-flight', lines: ['the change is not possible'], mood: 'bad' },
  ]
}

const hintsOf = (hints: readonly string[]): Fact[] =>
  hints.length === 0 ? [] : [{ label: 'Note', lines: hints, mood: 'warning' }]

function factsOf({ isEmpty, definition, kubernetes, node, settings }: Diff): Fact[] {
  return [
    ...(isEmpty ? [{ label: 'Changes', lines: ['nothing differs from what the host runs'] }] : []),
    ...(definition
      ? [
          {
            label: 'Definition',
            lines: [
              definition.from === definition.to
                ? `${definition.to}, with other content`
                : fromTo(definition.from, definition.to),
            ],
          },
        ]
      : []),
    ...(kubernetes ? [kubernetesFact(kubernetes)] : []),
    ...(node ? [{ label: 'Node', lines: [`another ${node.fields.join(', ')}`] }] : []),
    ...(settings.ntpServers ? [{ label: 'NTP servers', lines: listLines(settings.ntpServers) }] : []),
    ...(settings.sshKeys ? [{ label: 'SSH keys', lines: listLines(settings.sshKeys, shortKey) }] : []),
  ]
}

function kubernetesFact({ from, to, configurationChanged }: NonNullable<Diff['kubernetes']>): Fact {
  if (from === to) return { label: 'Kubernetes', lines: [`${to}, with another configuration`] }
  return {
    label: 'Kubernetes',
    lines: [
      `${fromTo(from, to)}${configurationChanged ? ', with another configuration' : ''}`,
      `Once ${to} is good, going back to ${from} restores a copy, and discards what was written to the API of Kubernetes since.`,
    ],
    mood: 'warning',
  }
}

/** What goes and what comes, a line each. */
function listLines(
  { from, to }: { readonly from: readonly string[]; readonly to: readonly string[] },
  show: (item: string) => string = (item) => item,
): string[] {
  const lines = [
    ...from.filter((item) => !to.includes(item)).map((item) => `- ${show(item)}`),
    ...to.filter((item) => !from.includes(item)).map((item) => `+ ${show(item)}`),
  ]
  return lines.length === 0 ? ['another order'] : lines
}

function tablesOf({ packs, variables, effects }: Diff, paper: Paper): string[] {
  const { columns } = paper
  return [
    ...(packs.length > 0 ? [renderTable(packs, packLayout, columns)] : []),
    ...packs.flatMap(valuesOf),
    ...(variables.length > 0 ? [renderTable(variables, variableLayout, columns)] : []),
    ...(effects.length > 0 ? [renderTable(effects, effectLayout, columns)] : []),
  ]
}

/** The lines in which the values of a pack differ. */
function valuesOf({ name, displayName, values = [], valuesLeftOut = 0 }: PackChange): string[] {
  if (values.length === 0) return []
  const width = Math.max(...values.map(({ line }) => String(line).length))
  const lines = values.map(
    ({ change, line, text }) =>
      `${marks[change] ?? ''} ${String(line).padStart(width)}  ${escapeInvisible(text)}`,
  )
  const more = valuesLeftOut > 0 ? [`and ${valuesLeftOut} more`] : []
  return [
    `Values of ${escapeInvisible(displayName ?? name)}, line by line:\n${[...lines, ...more].map((line) => `  ${line}\n`).join('')}`,
  ]
}

const fromTo = (from: string | undefined, to: string | undefined): string =>
  from === undefined || to === undefined || from === to ? (to ?? from ?? '') : `${from} -> ${to}`

function partsOf({ fields, charts, manifests, namespaces, isApplied, change }: PackChange): string {
  const names = (items: readonly { readonly name: string; readonly change: string }[]) =>
    items.map((item) => `${marks[item.change] ?? ''}${item.name}`).join(' ')
  const parts = [
    ...fields.filter((field) => ['values', 'order', 'content'].includes(field)),
    ...charts.map(
      (chart) =>
        `chart ${marks[chart.change] ?? ''}${chart.name} ${fromTo(chart.fromVersion, chart.toVersion)}`,
    ),
    ...(manifests.length > 0 ? [`manifests ${names(manifests)}`] : []),
    ...(namespaces.length > 0 ? [`namespaces ${names(namespaces)}`] : []),
    ...(change === 'changed' && !isApplied ? ['nothing is applied for it'] : []),
  ]
  return parts.join(', ')
}

const marks: Readonly<Record<string, string>> = { added: '+', removed: '-' }

function valueOf(change: VariableChange, side: 'from' | 'to'): string | undefined {
  const isThere = change.change === 'changed' || (change.change === 'added') === (side === 'to')
  if (!isThere) return undefined
  if (change.isSensitive) return masked
  const value = change[side] ?? ''
  if (value === '') return '""'
  return value.length > longestValue ? `${value.slice(0, longestValue)}...` : value
}
