import { randomUUID } from 'node:crypto'
import { jsonBody, notLoggedIn, type Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Paper, renderTable, type Column, span, oneLine } from '../../ctl/layout.ts'
import { checkMs, problemsOf, renderProblems, parseBody, toFailure } from '../../ctl/reply.ts'
import { readMapping } from '../../ctl/request-body.ts'
import type { ClusterConfiguration, ClusterCreated, ClusterDryRun } from '../schemas.ts'
import { missingFact, needColumns } from '../../ctl/needs.ts'
import { clusterPath, hostPath, requireDetails } from '../../ctl/cluster.ts'
import { waitUntilRunning, waitUntilDeleted } from './watch.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import { hasValues, readGivenOf, type Given } from '../../ctl/given-values.ts'
import { printable } from '../../base/printable.ts'
import type { EdgeHostInfo } from '../../host/schemas.ts'
import { isDnsLabel } from '../../kubernetes/names.ts'
import { definitionForCreation } from './choose-definition.ts'

type Planned = ClusterDryRun['plan'][number]

const planLayout: readonly Column<Planned>[] = [
  { title: 'STEP', read: ({ title }) => title, isFlexible: true },
  { title: 'PACK', read: ({ pack }) => pack, isFlexible: true },
  { title: 'AT MOST', read: ({ timeoutSeconds }) => span(timeoutSeconds) },
]

type CreateContext = Context<
  'name' | 'definition' | 'signature' | 'endpoint' | 'set' | 'set-file' | 'dry-run' | 'wait' | 'yes'
>

/** `edgehostctl cluster create`. */
export async function createCluster(context: CreateContext): Promise<'failed' | undefined> {
  const { client, line, output, target } = context
  const isDryRun = line.options['dry-run'] !== undefined
  if (isDryRun && line.options.wait !== undefined)
    throw new Failure('usage', '--dry-run creates nothing to wait for; leave out --wait')
  const { body, headers } = jsonBody(Buffer.from(JSON.stringify(await readConfiguration(context))))
  // One key for all attempts of the client: a repetition creates nothing.
  const key = { 'idempotency-key': randomUUID() }
  const reply = await client.ask({
    method: 'POST',
    path: isDryRun ? `${clusterPath}?dryRun=true` : clusterPath,
    body,
    headers: { ...headers, ...key },
    timeoutMs: checkMs,
  })
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (isDryRun && reply.status === 200) {
    const found = parseBody<ClusterDryRun>(reply, ['isPossible', 'problems', 'plan'])
    await output.show(found, (paper) => renderDryRun(found, paper))
    return found.isPossible ? undefined : 'failed'
  }
  if (reply.status !== 201) {
    const problems = problemsOf(reply)
    if (problems !== undefined) await output.show({ problems }, (paper) => renderProblems(problems, paper))
    throw toFailure(reply)
  }
  const created = parseBody<ClusterCreated>(reply, ['uid'])
  if (line.options.wait === undefined || output.format === 'table')
    await output.show(created, (paper) => renderCreated(created, paper))
  if (line.options.wait !== undefined) await waitUntilRunning(context)
  return undefined
}

/** The body of the request: the content of FILE, or the one that the options describe. @throws Failure */
async function readConfiguration(context: CreateContext): Promise<object> {
  const { line } = context
  const [file] = line.arguments
  const { name, definition, signature, endpoint } = line.options
  if (file !== undefined) {
    if ([name, definition, signature, endpoint].some((each) => each !== undefined) || hasValues(line))
      throw new Failure('usage', 'FILE says all of the cluster; leave out the options that describe one')
    return readMapping(file, 'the body of POST /v1/edge-mgmt/cluster')
  }
  if (name === undefined)
    throw new Failure('usage', 'give --name NAME and --definition FILE; or FILE, the body of the request')
  // Before a definition is sent for it.
  if (!isDnsLabel(name))
    throw new Failure(
      'usage',
      `--name must be 1 to 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit; it is ${printable(name) || 'empty'}`,
    )
  const chosen = await definitionForCreation(context)
  for (const hint of chosen.hints) context.output.note(hint)
  const given = hasValues(line) ? readGivenOf(line, await chosen.profiles()) : []
  return describeCluster(name, chosen.path, given, endpoint)
}

/** A cluster of this host alone. @param endpoint address of its API; by default the address of the host */
const describeCluster = (
  name: string,
  archiveUploadPath: string,
  profileVariables: readonly Given[],
  endpoint = '',
): ClusterConfiguration => ({
  metadata: { name },
  spec: {
    archiveUploadPath,
    ...(profileVariables.length > 0 ? { profileVariables: [...profileVariables] } : {}),
    cloudConfig: {
      spec: {
        clusterConfig: { controlPlaneEndpoint: { host: endpoint } },
        machinePoolConfig: [
          { name: 'control', isControlPlane: true, useControlPlaneAsWorker: true, size: 1, hosts: [{}] },
        ],
      },
    },
  },
})

/** A host of an older version does not list the needs. */
type DryRun = Omit<ClusterDryRun, 'needs'> & Partial<Pick<ClusterDryRun, 'needs'>>

function renderDryRun({ isPossible, problems, plan, needs = [] }: DryRun, paper: Paper): string {
  return [
    renderFacts(
      [
        isPossible
          ? { label: 'Pre-flight', lines: ['the cluster can be created'], mood: 'good' }
          : { label: 'Pre-flight', lines: ['the cluster cannot be created'], mood: 'bad' },
        ...(needs.length > 0 ? [missingFact(needs, 'on this host')] : []),
      ],
      paper,
    ),
    ...(problems.length > 0 ? [renderProblems(problems, paper)] : []),
    ...(needs.length > 0 ? [renderTable(needs, needColumns('THERE'), paper.columns)] : []),
    ...(plan.length > 0 ? [renderTable(plan, planLayout, paper.columns)] : []),
  ].join('\n')
}

function renderCreated({ uid, problems = [] }: ClusterCreated, paper: Paper): string {
  return [
    renderFacts(
      [
        { label: 'Cluster', lines: [uid] },
        { label: 'Next', lines: ['edgehostctl cluster watch'] },
      ],
      paper,
    ),
    ...(problems.length > 0 ? [renderProblems(problems, paper)] : []),
  ].join('\n')
}

/** `edgehostctl cluster delete`: says what goes, and deletes it after a yes. */
export async function deleteCluster(context: Context<'yes' | 'wait'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const details = await requireDetails(context)
  const { name, id } = details.metadata
  if (line.options.yes === undefined) {
    const { spec } = await client.get<EdgeHostInfo>(hostPath, ['spec'])
    const left =
      spec.managementMode === 'local'
        ? ''
        : ' The platform manages it and still wants it: delete it there, or it is made anew with its next change.'
    confirmDeletion(
      terminal,
      `The cluster ${oneLine(name ?? '')} (${oneLine(id ?? '')}) goes, with everything that runs in it and the data that Kubernetes keeps for it. Files that pods keep in folders of the host (hostPath), and the content, stay.${left}`,
    )
  }
  await client.change('DELETE', clusterPath)
  if (line.options.wait !== undefined) await waitUntilDeleted(context)
  else output.note('The cluster is being deleted: edgehostctl cluster watch')
  return undefined
}
