import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { clusterWrites } from '../test/e2e/cluster/cluster-writes.ts'
import type { PlantWish } from '../test/e2e/cluster/plant-definition.ts'
import type { Span } from './own-time.ts'

const policy = '/etc/kubernetes/pki/bench-audit.yaml'

// Of each request one line, when it is received, a watch too. The daemon and the programs that it starts are the only users of this name, but
// for kubectl in a test or a bench.
const policyText = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- {level: Metadata, users: [kubernetes-admin]}
- {level: None}
`

/** Arguments of the API server; a manifest that is changed by hand would be put right. */
export const auditArguments = { 'audit-policy-file': policy, 'audit-log-path': '-' } as const

/** A request of the daemon to the API server. */
export interface AuditedRequest {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly verb: string
  /** Whether it may have changed something. */
  readonly isWrite: boolean
}

/** Has the API server of a Running cluster write down the requests of the daemon, by a definition with the arguments for it. */
export async function startAudit(
  plant: ClusterHost,
  cluster: ClusterClient,
  wish: PlantWish = {},
): Promise<void> {
  await plant.host.write(policy, policyText)
  const writes = clusterWrites(plant, cluster)
  await writes.take({ ...wish, version: '1.0.1', apiArguments: auditArguments })
  await writes.settled(300_000)
}

/** The requests of a time. */
export async function readRequests(
  host: ClusterHost['host'],
  { from, to }: Span,
): Promise<readonly AuditedRequest[]> {
  const log = await host.sh('cat /var/log/pods/kube-system_kube-apiserver*/kube-apiserver/*.log')
  const all = parseAudit(log)
  if (all.length === 0) throw new Error('the API server has written down no request at all')
  return all.filter(({ at }) => at >= from && at < to)
}

/** How many of each kind there were, for a note. */
export function countVerbs(requests: readonly AuditedRequest[]): string {
  const verbs = [...new Set(requests.map(({ verb }) => verb))]
  const counted = verbs.map((each) => `${requests.filter(({ verb }) => verb === each).length} ${each}`)
  return counted.join(', ') || 'none'
}

const reading = ['get', 'list', 'watch']

/** Lines of a log of containers, `<time> stdout F <line>`, that are events of the audit. */
const parseAudit = (log: string): readonly AuditedRequest[] =>
  log.split('\n').flatMap((line) => {
    const from = line.indexOf('{"kind":"Event"')
    if (from < 0) return []
    const {
      verb = '',
      requestURI = '',
      requestReceivedTimestamp = '',
    } = JSON.parse(line.slice(from)) as Record<string, string>
    const isWrite = !reading.includes(verb) && !requestURI.includes('dryRun=All')
    return [{ at: Date.parse(requestReceivedTimestamp), verb, isWrite }]
  })
