import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { eventually } from '../test/e2e/host/eventually.ts'
import type { Figure } from './figure.ts'
import { single } from './numbers.ts'
import { parseCpuMs, parseRssMiB } from './usage.ts'

const kubernetes = '/etc/kubernetes'
const policy = `${kubernetes}/pki/bench-audit.yaml`

// Of each request one line, when it is received, a watch too. The daemon is the only user of this name at rest.
const policyText = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- {level: Metadata, users: [kubernetes-admin]}
- {level: None}
`
// The kubelet starts the API server anew when its manifest is replaced.
const auditing = `
file=${kubernetes}/manifests/kube-apiserver.yaml
sed 's#^    - kube-apiserver$#&\\n    - --audit-policy-file=${policy}\\n    - --audit-log-path=-#' $file > /root/kube-apiserver.yaml
mv /root/kube-apiserver.yaml $file
`
const auditLog = 'cat /var/log/pods/kube-system_kube-apiserver*/kube-apiserver/*.log'

export interface RestTimes {
  /** After a start, before the daemon is at rest. */
  readonly settleMs: number
  readonly measureMs: number
}

/** Starts the daemon anew. @returns its resident memory at rest, MiB */
export async function readMemoryAtRest({ host }: ClusterHost, { settleMs }: RestTimes): Promise<number> {
  await host.output(['systemctl', 'restart', 'edgehostd'])
  await sleep(settleMs)
  return parseRssMiB(await host.read(`/proc/${await host.mainPid()}/status`))
}

/** What a Running cluster costs the daemon at rest. @param withoutMiB its memory at rest before there was a cluster */
export async function measureRest(
  plant: ClusterHost,
  cluster: ClusterClient,
  times: RestTimes,
  withoutMiB: number,
): Promise<Figure[]> {
  const { host } = plant
  await host.write(policy, policyText)
  await host.sh(auditing)
  await eventually(() => host.sh('pgrep --full -- --audit-policy-file= > /dev/null'), 120_000)
  await eventually(() => cluster.kubectl('get', '--raw', '/readyz'), 120_000)
  await eventually(async () => {
    const details = await cluster.details()
    if (details?.status.health.status === 'Healthy') return
    await sleep(1_000)
    throw new Error('the cluster is not healthy')
  }, 180_000)
  const memory = await readMemoryAtRest(plant, times)
  const pid = await host.mainPid()
  const cpuMs = async () => parseCpuMs(await host.read(`/proc/${pid}/stat`), { children: true })
  const [begun, before] = [Date.now(), await cpuMs()]
  await sleep(times.measureMs)
  const [ended, after] = [Date.now(), await cpuMs()]
  const requests = readRequests(await host.sh(auditLog)).filter(({ at }) => at >= begun && at < ended)
  const seconds = (ended - begun) / 1_000
  const kinds = [...new Set(requests.map(({ verb }) => verb))]
  const counted = kinds.map((kind) => `${requests.filter(({ verb }) => verb === kind).length} ${kind}`)
  return [
    {
      name: 'cluster: idle CPU of a core',
      ...{ value: single((after - before) / (10 * seconds)), unit: '%', target: '≤ 0.5 %' },
      note: `${after - before} ms in ${Math.round(seconds)} s, children included`,
    },
    {
      name: 'cluster: idle RSS more than without',
      ...{ value: single(memory - withoutMiB), unit: 'MiB', target: '≤ 15 MiB' },
      note: `${memory.toFixed(1)} and ${withoutMiB.toFixed(1)} MiB, each ${times.settleMs / 1_000} s after a start`,
    },
    {
      name: 'cluster: requests to the API server a minute',
      ...{ value: single((requests.length * 60) / seconds), unit: '', target: '≤ 6' },
      note: counted.join(', ') || 'none',
    },
  ]
}

/** Lines of a log of containers, `<time> stdout F <line>`, that are events of the audit. */
const readRequests = (log: string): { readonly at: number; readonly verb: string }[] =>
  log.split('\n').flatMap((line) => {
    const from = line.indexOf('{"kind":"Event"')
    if (from < 0) return []
    const { verb, requestReceivedTimestamp } = JSON.parse(line.slice(from)) as Record<string, string>
    return [{ at: Date.parse(requestReceivedTimestamp ?? ''), verb: verb ?? '' }]
  })
