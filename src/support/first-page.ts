// The first page of the archive: faults, and since when they are there. It is made of texts that are in the archive too, masked already. Pure.

import { escapeInvisible } from '../base/printable.ts'

/** Files that the first page is made of; they are read before all others. */
export const firstPageFiles = [
  'edgehostd.service.txt',
  'status.json',
  'attention.json',
  'cluster-details.json',
  'cluster-lifecycle.json',
  'error-logs.json',
  'journal-warnings.txt',
] as const

export type FirstPageFile = (typeof firstPageFiles)[number]

interface FirstPageOptions {
  readonly hostName: string
  /** RFC 3339. */
  readonly madeTimestamp: string
  readonly version: string
  /** Content of the files that could be read. */
  readonly files: ReadonlyMap<string, string>
  /** Why the others could not. */
  readonly problems: readonly { readonly from: string; readonly problem: string }[]
}

// Replies of the API, as far as they are used. A daemon of another version may lack any of it.
interface Status {
  readonly version?: string
  readonly startTimestamp?: string
  readonly failing?: readonly string[]
}
interface Condition {
  readonly type?: string
  readonly status?: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}
interface Details {
  readonly metadata?: { readonly name?: string; readonly creationTimestamp?: string }
  readonly status?: {
    readonly revision?: number
    readonly clusterState?: string
    readonly phase?: string
    readonly k8sVersion?: string
    readonly health?: { readonly status?: string }
  }
}
interface Lifecycle {
  readonly clusterEvents?: readonly Condition[]
  readonly edgeHostEvents?: readonly Condition[]
}
interface Events {
  readonly items?: readonly {
    readonly metadata?: { readonly creationTimestamp?: string }
    readonly involvedObject?: { readonly name?: string }
    readonly message?: string
    readonly source?: { readonly component?: string }
  }[]
}
interface Attention {
  readonly items?: readonly {
    readonly severity?: string
    readonly message?: string
    readonly command?: string
    readonly sinceTimestamp?: string
  }[]
}

const mostOfKind = 20
const mostErrors = 10

/** The text of the first page. */
export function firstPage({ hostName, madeTimestamp, version, files, problems }: FirstPageOptions): string {
  const json = <T extends object>(name: FirstPageFile): Partial<T> | undefined => {
    try {
      return (JSON.parse(files.get(name) ?? 'null') as Partial<T> | null) ?? undefined
    } catch {
      return undefined
    }
  }
  const status = json<Status>('status.json')
  const details = json<Details>('cluster-details.json')
  // The reply of a host without a cluster is an error, which has a code.
  const cluster = details?.status === undefined ? undefined : details
  const wrong = [
    ...(status === undefined ? [silence(propertiesOf(files.get('edgehostd.service.txt') ?? ''))] : []),
    ...attentionLines(json<Attention>('attention.json')),
    ...conditionProblems(json<Lifecycle>('cluster-lifecycle.json'), cluster !== undefined),
  ]
  const section = (title: string, lines: readonly string[], none: string) => [
    title,
    ...(lines.length === 0 ? [`  ${none}`] : lines.map((line) => `- ${line}`)),
    '',
  ]
  return [
    `Host ${hostName}: archive for support, made ${madeTimestamp} by edgehostd ${version}. Its secrets are masked.`,
    '',
    ...section('What is wrong, and since when', wrong, 'nothing that edgehostd knows of'),
    ...section('State', stateLines(status, cluster), 'not known, since the daemon does not answer'),
    ...section('Last errors', errorLines(json<Events>('error-logs.json'), files), 'none'),
    ...section(
      'What this page lacks',
      problems.map(({ from, problem }) => `${from}: ${oneLine(problem)}`),
      'nothing',
    ),
    'summary.json lists all files of the archive with their sources, and what could not be read.',
    '',
  ].join('\n')
}

/** Containers write some of it: a page is read on a terminal. */
const oneLine = (text: string) => escapeInvisible(text.replace(/\s+/g, ' ').trim())
const sentence = (...parts: readonly (string | undefined)[]) => oneLine(parts.filter(Boolean).join(' '))
/** A sentence, and its reason after a colon where there is one. */
const because = (what: string, reason: string | undefined) => (reason ? `${what}: ${oneLine(reason)}` : what)
const since = (time: string | undefined) => (time ? `since ${time}` : '')
/** The first lines, and how many more there are. */
const some = (lines: readonly string[], most = mostOfKind) =>
  lines.length <= most ? lines : [...lines.slice(0, most), `and ${lines.length - most} more`]

/** `Key=value` lines of systemctl show. */
const propertiesOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf('=')
      return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )

/** Why the daemon does not answer, as far as its unit says it. */
function silence(unit: Readonly<Record<string, string>>): string {
  const { ActiveState, SubState, Result, InactiveEnterTimestamp, ActiveEnterTimestamp, ExecMainStatus } = unit
  if (ActiveState === 'active')
    return sentence('edgehostd runs, and does not answer; it runs', since(ActiveEnterTimestamp))
  return sentence(
    `edgehostd does not run: ${[ActiveState, SubState, Result].filter(Boolean).join(', ') || 'its unit is not known'}`,
    ExecMainStatus === undefined ? '' : `(exit code ${ExecMainStatus})`,
    since(InactiveEnterTimestamp),
  )
}

/** What the daemon says that an operator has to know or to do. */
const attentionLines = (attention: Attention | undefined): readonly string[] =>
  some(
    (attention?.items ?? []).map(({ severity, message, command, sinceTimestamp }) =>
      sentence(
        severity && `${severity}:`,
        message,
        sinceTimestamp && `(${since(sinceTimestamp)})`,
        command && `-> ${command}`,
      ),
    ),
  )

function conditionProblems(lifecycle: Lifecycle | undefined, hasCluster: boolean): readonly string[] {
  const of = (what: string, conditions: readonly Condition[] = []) =>
    conditions
      .filter(({ status }) => status !== undefined && status !== 'True')
      .map(({ type, status, reason, message, lastTransitionTime }) =>
        because(
          sentence(
            `condition ${type ?? ''} of the ${what} is ${status ?? ''}`,
            reason && `(${reason})`,
            since(lastTransitionTime),
          ),
          message,
        ),
      )
  return some([
    // Without a cluster they are of the last one.
    ...(hasCluster ? of('cluster', lifecycle?.clusterEvents) : []),
    ...of('host', lifecycle?.edgeHostEvents),
  ])
}

function stateLines(status: Status | undefined, cluster: Partial<Details> | undefined): string[] {
  if (status === undefined && cluster === undefined) return []
  const { failing = [] } = status ?? {}
  const daemon = sentence(
    `edgehostd ${status?.version ?? ''} is ${failing.length === 0 ? 'ready' : 'not ready'}; it runs`,
    since(status?.startTimestamp),
  )
  if (!cluster) return [daemon, 'there is no cluster']
  const { metadata = {}, status: { k8sVersion, clusterState, phase, health, revision } = {} } = cluster
  return [
    daemon,
    sentence(
      `cluster ${metadata.name ?? ''}, Kubernetes ${k8sVersion ?? ''}, revision ${revision ?? ''}: ${clusterState ?? ''} (${phase ?? ''}), ${health?.status ?? ''}; made ${metadata.creationTimestamp ?? ''}`,
    ),
  ]
}

/** Errors that the API names; without a daemon its own warnings and errors in the journal. */
function errorLines(errors: Events | undefined, files: ReadonlyMap<string, string>): readonly string[] {
  if (errors?.items !== undefined) {
    // The same message every ten seconds would hide the others; the newest is the first.
    const repeats = new Map<string, { readonly at: string | undefined; count: number }>()
    for (const { metadata, source, involvedObject, message } of errors.items) {
      const text = sentence(`${source?.component ?? involvedObject?.name ?? ''}:`, message)
      const known = repeats.get(text)
      if (known) known.count += 1
      else repeats.set(text, { at: metadata?.creationTimestamp, count: 1 })
    }
    return some(
      [...repeats].map(([text, { at, count }]) =>
        sentence(at, count > 1 ? `(${count} times)` : '', text).slice(0, 500),
      ),
      mostErrors,
    )
  }
  const lines = (files.get('journal-warnings.txt') ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines
    .slice(-mostErrors)
    .reverse()
    .map((line) => oneLine(line).slice(0, 500))
}
