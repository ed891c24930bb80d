// The first page of the archive: what is wrong, and since when. It is made of texts that are in the archive too, masked already. Pure.

/** Files that the first page is made of; they are read before all others. */
export const firstPageFiles = [
  'edgehostd.service.txt',
  'status.json',
  'platform.json',
  'attention.json',
  'cluster-details.json',
  'cluster-revisions.json',
  'cluster-applications.json',
  'cluster-lifecycle.json',
  'cluster-events.json',
  'error-logs.json',
  'journal-errors.txt',
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
  readonly notes?: readonly string[]
}
interface Link {
  readonly mode?: string
  readonly url?: string
  readonly isConnected?: boolean
  readonly since?: string
  readonly cause?: { readonly message?: string }
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
    readonly clusterStateReason?: string
    readonly k8sVersion?: string
    readonly health?: { readonly status?: string; readonly reason?: string }
    readonly steps?: readonly {
      readonly title?: string
      readonly state?: string
      readonly failures?: number
      readonly reason?: string
      readonly startTimestamp?: string
    }[]
    readonly troubles?: readonly {
      readonly reason?: string
      readonly message?: string
      readonly namespace?: string
      readonly pod?: string
      readonly sinceTimestamp?: string
    }[]
    readonly deadline?: { readonly timestamp?: string; readonly action?: string }
  }
}
interface Revisions {
  readonly items?: readonly {
    readonly revision?: number
    readonly outcome?: string
    readonly reason?: string
    readonly creationTimestamp?: string
    readonly endTimestamp?: string
    readonly isActive?: boolean
  }[]
}
interface Applications {
  readonly clusterProfileTemplates?: readonly {
    readonly uid?: string
    readonly packs?: readonly {
      readonly name?: string
      readonly displayName?: string
      readonly version?: string
      readonly status?: string
      readonly startTime?: string
      readonly conditions?: readonly Condition[]
    }[]
  }[]
}
interface Lifecycle {
  readonly clusterEvents?: readonly Condition[]
  readonly edgeHostEvents?: readonly Condition[]
}
interface Events {
  readonly items?: readonly {
    readonly metadata?: { readonly creationTimestamp?: string }
    readonly involvedObject?: { readonly name?: string }
    readonly relatedObject?: { readonly kind?: string; readonly name?: string }
    readonly reason?: string
    readonly message?: string
    readonly severity?: string
    readonly source?: { readonly component?: string }
  }[]
}
interface Attention {
  readonly items?: readonly {
    readonly severity?: string
    readonly message?: string
    readonly command?: string
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
    ...daemonProblems(status, propertiesOf(files.get('edgehostd.service.txt') ?? '')),
    ...linkProblems(json<Link>('platform.json')),
    ...attentionLines(json<Attention>('attention.json')),
    ...(cluster ? clusterProblems(cluster) : []),
    ...(cluster ? revisionProblems(json<Revisions>('cluster-revisions.json')) : []),
    ...(cluster
      ? packProblems(json<Applications>('cluster-applications.json'), json<Events>('cluster-events.json'))
      : []),
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

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()
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

function daemonProblems(status: Status | undefined, unit: Readonly<Record<string, string>>): string[] {
  const { ActiveState, SubState, Result, InactiveEnterTimestamp, ActiveEnterTimestamp, ExecMainStatus } = unit
  if (status === undefined)
    return ActiveState === 'active'
      ? [sentence('edgehostd runs, and does not answer; it runs', since(ActiveEnterTimestamp))]
      : [
          sentence(
            `edgehostd does not run: ${[ActiveState, SubState, Result].filter(Boolean).join(', ') || 'its unit is not known'}`,
            ExecMainStatus === undefined ? '' : `(exit code ${ExecMainStatus})`,
            since(InactiveEnterTimestamp),
          ),
        ]
  const { failing = [], notes = [] } = status
  return [
    ...failing.map(
      (check) => `edgehostd is not ready: the check ${check} fails; journal.txt says since when`,
    ),
    ...notes.map((check) => `the check ${check} fails; journal.txt says since when`),
  ]
}

function linkProblems(link: Link | undefined): string[] {
  if (link?.mode !== 'connected' || link.isConnected !== false) return []
  return [
    because(sentence('the platform', link.url, 'is not connected', since(link.since)), link.cause?.message),
  ]
}

/** What the daemon itself says that needs attention. */
const attentionLines = (attention: Attention | undefined): readonly string[] =>
  some(
    (attention?.items ?? []).map(({ severity, message, command }) =>
      sentence(severity && `${severity}:`, message, command && `(${command})`),
    ),
  )

function clusterProblems({ metadata = {}, status = {} }: Partial<Details>): string[] {
  const { clusterState, phase, clusterStateReason, health, steps = [], troubles = [], deadline } = status
  const name = metadata.name ?? ''
  const isWell = clusterState === 'Running' && health?.status === 'Healthy'
  return [
    ...(isWell
      ? []
      : [
          because(
            `the cluster ${name} is ${clusterState ?? 'unknown'} (${phase ?? ''}), ${health?.status ?? ''}`,
            clusterStateReason || health?.reason || 'no reason is known',
          ),
        ]),
    ...(deadline?.timestamp === undefined
      ? []
      : [
          deadline.action === 'takenBack'
            ? `the running change is taken back at ${deadline.timestamp} if it is not good before`
            : `the running change counts as stuck at ${deadline.timestamp}`,
        ]),
    ...some(
      steps
        .filter(({ state }) => state === 'failed')
        .map(({ title, reason, failures, startTimestamp }) =>
          because(
            sentence(
              `the step "${title ?? ''}" has failed ${failures ?? 1} times, last begun`,
              startTimestamp,
            ),
            reason,
          ),
        ),
    ),
    ...some(
      troubles.map(({ namespace, pod, reason, message, sinceTimestamp }) =>
        because(
          sentence(`pod ${namespace ?? ''}/${pod ?? ''}`, reason && `(${reason})`, since(sinceTimestamp)),
          message,
        ),
      ),
    ),
  ]
}

function revisionProblems(revisions: Revisions | undefined): readonly string[] {
  const items = revisions?.items ?? []
  const [newest] = items
  return items
    .filter(
      (each) => each.outcome === 'held' || (each.outcome === 'failed' && (each === newest || each.isActive)),
    )
    .map(({ revision, outcome, reason, creationTimestamp, endTimestamp }) =>
      because(
        sentence(
          `revision ${revision ?? ''} ${outcome === 'held' ? 'is held' : 'has failed'}`,
          since(outcome === 'held' ? creationTimestamp : (endTimestamp ?? creationTimestamp)),
        ),
        reason,
      ),
    )
}

function packProblems(applications: Applications | undefined, events: Events | undefined): readonly string[] {
  const packs = (applications?.clusterProfileTemplates ?? []).flatMap(({ uid = '', packs: own = [] }) =>
    own.map((pack) => ({ ...pack, uid })),
  )
  return some(
    packs
      .filter(({ status }) => status !== 'Available')
      .map(({ uid, name = '', displayName, version, status, startTime, conditions = [] }) => {
        // The newest first: the oldest warning after the last good event is the beginning.
        const ofPack = (events?.items ?? []).filter(
          ({ relatedObject }) => relatedObject?.kind === 'pack' && relatedObject.name === `${uid}/${name}`,
        )
        const end = ofPack.findIndex(({ severity }) => severity === 'Normal')
        const begun = (end === -1 ? ofPack : ofPack.slice(0, end)).at(-1)?.metadata?.creationTimestamp
        const message = conditions
          .filter((each) => each.status !== 'True')
          .map((each) => each.message)
          .find(Boolean)
        const shown = displayName ? `${name}/${displayName}` : name
        return because(
          sentence(`the pack ${shown}`, version, `is ${status ?? 'unknown'}`, since(begun ?? startTime)),
          message,
        )
      }),
  )
}

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

/** Errors that the API names; without a daemon those of its own in the journal. */
function errorLines(errors: Events | undefined, files: ReadonlyMap<string, string>): readonly string[] {
  if (errors?.items !== undefined)
    return some(
      errors.items.map(({ metadata, source, involvedObject, message }) =>
        sentence(
          metadata?.creationTimestamp,
          `${source?.component ?? involvedObject?.name ?? ''}:`,
          message,
        ).slice(0, 500),
      ),
      mostErrors,
    )
  const lines = (files.get('journal-errors.txt') ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines
    .slice(-mostErrors)
    .reverse()
    .map((line) => oneLine(line).slice(0, 500))
}
