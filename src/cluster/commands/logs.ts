import type { Context } from '../../ctl/client.ts'
import { clusterPath, requireDetails } from '../../ctl/cluster.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import type { ClusterDetails, PodLogs } from '../schemas.ts'

type Trouble = ClusterDetails['status']['troubles'][number]

/** `edgehostctl cluster logs [POD]`. */
export async function showLogs(context: Context<'namespace' | 'container' | 'previous'>): Promise<undefined> {
  const { client, line, output } = context
  const { namespace, container, previous } = line.options
  const [pod] = line.arguments
  const place =
    pod !== undefined && namespace !== undefined ? { namespace, pod } : await choose(context, pod, namespace)
  const query = new URLSearchParams({
    ...(container === undefined ? {} : { container }),
    ...(previous === undefined ? {} : { previous: 'true' }),
  }).toString()
  const path = `${clusterPath}/pods/${encodeURIComponent(place.namespace)}/${encodeURIComponent(place.pod)}/logs`
  const found = await client.get<PodLogs>(`${path}${query === '' ? '' : `?${query}`}`, ['container', 'lines'])
  const before = found.isPrevious ? ', before its last start' : ''
  const about = `${found.namespace}/${found.pod}, container ${found.container}${before}`
  if (output.format === 'table')
    output.note(
      found.lines.length === 0
        ? `${about}: it has written nothing; if it has not started yet, edgehostctl cluster get says why`
        : `${about}:`,
    )
  await output.show(found, () => found.lines.map((each) => `${oneLine(each)}\n`).join(''))
  return undefined
}

/** The pod to read: the named one where it is in trouble, or the first in trouble. @throws Failure where none is */
async function choose(
  context: Context<'namespace' | 'container' | 'previous'>,
  pod: string | undefined,
  namespace: string | undefined,
): Promise<Pick<Trouble, 'namespace' | 'pod'>> {
  const { troubles, phase } = (await requireDetails(context)).status
  // The API server refuses the pods of such a workload, so there is none to read.
  const withPods = troubles.filter(({ reason }) => reason !== 'PodsNotMade')
  const isMeant = (each: Trouble) =>
    (pod === undefined || each.pod === pod) && (namespace === undefined || each.namespace === namespace)
  const found =
    withPods.find((each) => isMeant(each) && each.container !== undefined) ?? withPods.find(isMeant)
  if (found) return found
  if (pod !== undefined) return { namespace: namespace ?? 'default', pod }
  throw new Failure(
    'failed',
    phase === 'Unknown'
      ? 'the API server of the cluster does not answer, so its pods are not known: edgehostctl status'
      : 'no pod of the cluster is in trouble; name one: edgehostctl cluster logs POD --namespace NAME',
  )
}
