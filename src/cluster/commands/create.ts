import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { printable } from '../../base/printable.ts'
import { jsonBody, notLoggedIn } from '../../ctl/client.ts'
import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Paper } from '../../ctl/facts.ts'
import { readBody } from '../../ctl/read-body.ts'
import { parseBody, toFailure } from '../../ctl/reply.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { span } from '../../ctl/text.ts'
import type { ClusterCreated, ClusterDryRun } from '../schemas.ts'
import { clusterPath } from './read-details.ts'
import { checkMs, problemsOf, renderProblems } from './show-problems.ts'
import { waitUntilRunning } from './watch.ts'

type Planned = ClusterDryRun['plan'][number]

const planLayout: readonly Column<Planned>[] = [
  { title: 'STEP', read: ({ title }) => title, isFlexible: true },
  { title: 'PACK', read: ({ pack }) => pack, isFlexible: true },
  { title: 'AT MOST', read: ({ timeoutSeconds }) => span(timeoutSeconds) },
]

/** `edgehostctl cluster create`. */
export async function createCluster(context: Context<'dry-run' | 'wait'>): Promise<'failed' | undefined> {
  const { client, line, output, target } = context
  const [file = ''] = line.arguments
  const isDryRun = line.options['dry-run'] !== undefined
  if (isDryRun && line.options.wait !== undefined)
    throw new Failure('usage', '--dry-run creates nothing to wait for; leave out --wait')
  const { body, headers } = jsonBody(Buffer.from(JSON.stringify(await parseConfiguration(file))))
  const reply = await client.ask({
    ...{ method: 'POST', path: isDryRun ? `${clusterPath}?dryRun=true` : clusterPath },
    ...{ body, headers: { ...headers, 'idempotency-key': randomUUID() }, timeoutMs: checkMs },
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

/** @throws Failure usage naming the file and the place where it is neither YAML nor JSON, without anything of its content */
async function parseConfiguration(file: string): Promise<object> {
  const refuse = (why: string, cause?: unknown) =>
    new Failure('usage', `FILE: ${printable(file)} ${why}`, { cause })
  const bytes = readBody(file, 'FILE')
  if (!isUtf8(bytes) || bytes.includes(0))
    throw refuse('is not text in UTF-8, so it is neither YAML nor JSON')
  const { parse, YAMLParseError } = await import('yaml')
  let parsed: unknown
  try {
    // JSON is YAML too.
    parsed = parse(bytes.toString(), { logLevel: 'error' })
  } catch (error) {
    if (error instanceof YAMLParseError && error.code === 'MULTIPLE_DOCS')
      throw refuse('has more than one YAML document; write one', error)
    // Below its first line is an excerpt; a quoted text is a part of the file too.
    const [reason = ''] = (error as Error).message.split('\n')
    throw refuse(`is not YAML or JSON: ${reason.replace(/: ".*"/, '').replace(/:$/, '')}`, error)
  }
  if (parsed === null) throw refuse('is empty; write the body of POST /v1/edge-mgmt/cluster')
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw refuse(
      'is not a mapping such as metadata: {name: shop}; write the body of POST /v1/edge-mgmt/cluster',
    )
  return parsed
}

function renderDryRun({ isPossible, problems, plan }: ClusterDryRun, paper: Paper): string {
  return [
    renderFacts(
      [
        isPossible
          ? { label: 'Pre-flight', lines: ['the cluster can be created'], mood: 'good' }
          : { label: 'Pre-flight', lines: ['the cluster cannot be created'], mood: 'bad' },
      ],
      paper,
    ),
    ...(problems.length > 0 ? [renderProblems(problems, paper)] : []),
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
