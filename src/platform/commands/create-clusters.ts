import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Paper } from '../../ctl/facts.ts'
import { renderProblems } from '../../ctl/problems.ts'
import { readMapping } from '../../ctl/read-mapping.ts'
import { parseBody } from '../../ctl/reply.ts'
import { oneLine } from '../../ctl/text.ts'
import type { ClusterValidatorResponse, EdgeNativeClusterEntity } from '../schemas/clusters.ts'
import type { EdgeHostDevice } from '../schemas/edge-hosts.ts'
import type { ClusterProfile } from '../schemas/profiles.ts'
import { findUid, projects } from './find.ts'
import { clusterKind } from './find-cluster.ts'
import { findItem, findVersionIn, profileKind, type Found } from './find-version.ts'
import { hasValues, valuesForProfiles } from './given-for-profiles.ts'
import { findReadScopes, findScopes, queryOf, type Scope } from './scopes.ts'
import { sendChecked } from './send-checked.ts'

type EntityContext = Context<'project' | 'name' | 'edge-host'>

interface Order {
  /** Of the project of the host; may be empty. */
  readonly query: string
  readonly entity: object
}

const hostKind = { noun: 'host', list: 'host list', path: '/v1/edgehosts' } as const

export async function validateCluster(context: EntityContext): Promise<'failed' | undefined> {
  const { query, entity } = await readOrder(context)
  const reply = await sendChecked(context, 'POST', `${clusterKind.path}/edge-native/validate${query}`, entity)
  const found = parseBody<ClusterValidatorResponse>(reply, ['isPossible', 'problems'])
  await context.output.show(found, (paper) => renderFound(found, paper))
  return found.isPossible ? undefined : 'failed'
}

export async function createCluster(context: EntityContext): Promise<undefined> {
  const { query, entity } = await readOrder(context)
  const reply = await sendChecked(context, 'POST', `${clusterKind.path}/edge-native${query}`, entity)
  const made = parseBody<{ uid: string }>(reply, ['uid'])
  await context.output.show(made, () => `${oneLine(made.uid)}\n`)
  return undefined
}

function renderFound({ isPossible, problems }: ClusterValidatorResponse, paper: Paper): string {
  return [
    renderFacts(
      [
        isPossible
          ? { label: 'Checks', lines: ['the cluster can be created'], mood: 'good' }
          : { label: 'Checks', lines: ['the cluster cannot be created'], mood: 'bad' },
      ],
      paper,
    ),
    ...(problems.length > 0 ? [renderProblems(problems, paper)] : []),
  ].join('\n')
}

async function readOrder(context: EntityContext): Promise<Order> {
  const { client, line } = context
  const [file] = line.arguments
  const { project, name, 'edge-host': host } = line.options
  const words = line.lists?.profile ?? []
  const isByOptions = [name, host].some((each) => each !== undefined) || words.length > 0 || hasValues(line)
  if (file !== undefined) {
    if (isByOptions) throw new Failure('usage', 'FILE says all of the cluster; leave out the other options')
    const entity = await readMapping(file, 'the body of POST /v1/spectroclusters/edge-native')
    const uid = project === undefined ? '' : await findUid(client, projects, project)
    return { query: queryText({ uid, name: '' }), entity }
  }
  if (name === undefined || host === undefined || words.length === 0)
    throw new Failure('usage', 'give FILE, or --name, --edge-host and --profile')
  const scopes = await findScopes(client, project)
  const { scope, item } = await findItem<EdgeHostDevice>(client, hostKind, host, scopes)
  const profiles = await findProfiles(context, words, scope)
  const entity: EdgeNativeClusterEntity = {
    metadata: { name },
    spec: {
      machinepoolconfig: [{ cloudConfig: { edgeHosts: [{ hostUid: item.metadata.uid }] } }],
      profiles: (await valuesForProfiles(client, line, profiles)).map(({ uid, variables }) => ({
        ...{ uid, variables: [...variables] },
      })),
    },
  }
  return { query: queryText(scope), entity }
}

/** The profiles that words name, of the scope of a cluster or of the tenant. @throws Failure */
export async function findProfiles(
  { client }: Pick<Context, 'client'>,
  words: readonly string[],
  { uid: projectUid }: Scope,
): Promise<readonly Found<ClusterProfile>[]> {
  const all = await findReadScopes(client, undefined)
  const usable = all.filter(({ uid, isOfTenant }) => uid === '' || uid === projectUid || isOfTenant === true)
  const found: Found<ClusterProfile>[] = []
  for (const word of words) found.push(await findVersionIn<ClusterProfile>(client, profileKind, word, usable))
  return found
}

function queryText(scope: Scope): string {
  const text = new URLSearchParams(queryOf(scope)).toString()
  return text === '' ? '' : `?${text}`
}
