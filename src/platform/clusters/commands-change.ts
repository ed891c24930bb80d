import type { Client, Context } from '../../ctl/client.ts'
import type { CommandLine } from '../../ctl/command.ts'
import { hasValues, readGivenOf, type Given, type KnownProfile } from '../../ctl/given-values.ts'
import type { ClusterProfile, Variable } from '../profiles/schemas.ts'
import {
  type Found,
  findUid,
  projects,
  clusterKind,
  findItem,
  findVersionIn,
  profileKind,
  findReadScopes,
  findScopes,
  queryOf,
  type Scope,
  findCluster,
  desiredOf,
  whenHostActs,
} from '../commands/find.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Paper, renderTable, type Column, oneLine } from '../../ctl/layout.ts'
import { renderProblems, parseBody, understand } from '../../ctl/reply.ts'
import { readMapping, readKeys, shortKey } from '../../ctl/request-body.ts'
import type {
  ClusterValidatorResponse,
  EdgeNativeClusterEntity,
  ClusterProfileList,
  ClusterVariables,
  SpectroCluster,
} from './schemas.ts'
import type { EdgeHostDevice } from '../hosts/schemas.ts'
import { sendChecked, numberOf } from '../commands/send.ts'
import { program } from '../../base/program.ts'
import type { EdgeNativeCloudConfig } from '../clouds/schemas.ts'

/** A profile of a request, with its values. */
export interface ProfileValues {
  readonly uid: string
  readonly variables: readonly { readonly name: string; readonly value: string }[]
}

/** The values of `--set` and `--set-file` for profiles; the declared variables are asked for. @throws Failure usage, without a value in it */
export async function valuesForProfiles(
  client: Client,
  line: CommandLine,
  profiles: readonly Found<ClusterProfile>[],
): Promise<readonly ProfileValues[]> {
  if (!hasValues(line)) return profiles.map(({ item }) => ({ uid: item.metadata.uid, variables: [] }))
  const known = []
  for (const { item, pathOf } of profiles) {
    const { variables } = await client.get<{ variables: Variable[] }>(pathOf('/variables'), ['variables'])
    known.push({ uid: item.metadata.uid, name: item.metadata.name, variables })
  }
  return byProfile(readGivenOf(line, known), known)
}

/** Values, by their profiles. */
export const byProfile = (
  given: readonly Given[],
  known: readonly KnownProfile[],
): readonly ProfileValues[] =>
  known.map(({ uid }) => ({
    uid,
    variables: given.flatMap(({ name, value, profileUid }) => (profileUid === uid ? [{ name, value }] : [])),
  }))

type EntityContext = Context<'project' | 'name' | 'edge-host'>

interface Order {
  /** Query for the project of the host; may be empty. */
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
        uid,
        variables: [...variables],
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

type ClusterVariable = ClusterVariables[number]['variables'][number]

const valueLayout: readonly Column<{ readonly profile: string; readonly variable: ClusterVariable }>[] = [
  { title: 'PROFILE', read: ({ profile }) => profile, isFlexible: true },
  { title: 'NAME', read: ({ variable }) => variable.name, isFlexible: true },
  { title: 'VALUE', read: ({ variable }) => variable.value, isFlexible: true },
  { title: 'DEFAULT', read: ({ variable }) => variable.defaultValue, isFlexible: true },
  {
    title: 'RULES',
    read: ({ variable: { required, immutable, hidden, isSensitive } }) =>
      Object.entries({ required, immutable, hidden, sensitive: isSensitive })
        .flatMap(([name, isSet]) => (isSet === true ? [name] : []))
        .join(', '),
    isFlexible: true,
  },
]

export async function clusterValues(context: Context<'project'>): Promise<undefined> {
  const { client, line, output } = context
  const { item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const path = pathOf('/variables')
  const present = [...(await client.get<ClusterVariables>(path, []))]
  const profiles = item.spec.clusterProfileTemplates
  const known = understand(() =>
    present.map(({ profileUid: uid, variables }) => ({
      uid,
      variables,
      name: profiles.find((profile) => profile.uid === uid)?.name ?? uid,
    })),
  )
  if (!hasValues(line)) {
    const rows = known.flatMap(({ name, variables }) =>
      variables.map((variable) => ({ profile: name, variable })),
    )
    await output.show(present, ({ columns }) => renderTable(rows, valueLayout, columns))
    return undefined
  }
  const changed = byProfile(readGivenOf(line, known), known).filter(({ variables }) => variables.length > 0)
  const reply = await sendChecked(
    context,
    'PATCH',
    path,
    changed.map(({ uid, variables }) => ({ profileUid: uid, variables })),
  )
  noteChange(context, item, numberOf(reply))
  return undefined
}

const profileLayout: readonly Column<ClusterProfileList['profiles'][number]>[] = [
  { title: 'NAME', read: ({ metadata }) => metadata.name, isFlexible: true },
  { title: 'VERSION', read: ({ spec }) => spec.profileVersion },
  { title: 'TYPE', read: ({ spec }) => spec.type },
  { title: 'PACKS', read: ({ spec }) => packsOf(spec.packs), isFlexible: true },
  { title: 'UID', read: ({ metadata }) => metadata.uid },
]

const packsOf = (packs: ClusterProfileList['profiles'][number]['spec']['packs']) =>
  packs.map(({ spec: { name, version } }) => `${name} ${version}`).join(', ')

export async function clusterProfiles(context: Context<'project'>): Promise<undefined> {
  const { client, line, output } = context
  const words = line.lists?.profile
  if (words === undefined && hasValues(line))
    throw new Failure('usage', '--set and --set-file are for a change: add --profile, or use cluster values')
  const { scope, item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const path = pathOf('/profiles')
  if (words === undefined) {
    const found = await client.get<ClusterProfileList>(path, ['profiles'])
    await output.show(found, ({ columns }) => renderTable(found.profiles, profileLayout, columns))
    return undefined
  }
  const profiles = await valuesForProfiles(client, line, await findProfiles(context, words, scope))
  const reply = await sendChecked(context, 'PUT', path, { profiles })
  noteChange(context, item, numberOf(reply))
  return undefined
}

/** Shows NTP servers and SSH keys of a cluster, or replaces them as a whole. */
export async function clusterSettings(
  context: Context<'project' | 'ntp' | 'ssh-key' | 'none'>,
): Promise<undefined> {
  const { client, line, output } = context
  const { ntp, 'ssh-key': keyFiles } = line.lists ?? {}
  const isChange = (ntp ?? keyFiles) !== undefined
  const isNone = line.options.none !== undefined
  if (isNone && isChange)
    throw new Failure('usage', '--none takes all of them away; leave out --ntp and --ssh-key')
  const body = { ntpServers: ntp ?? [], sshKeys: (keyFiles ?? []).flatMap(readKeys) }
  const { scope, item } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const { uid } = item.metadata
  const query = new URLSearchParams(queryOf(scope)).toString()
  const pathOf = (rest: string) =>
    `/v1/cloudconfigs/edge-native/${encodeURIComponent(uid)}${rest}${query === '' ? '' : `?${query}`}`
  if (!isChange && !isNone) {
    const { spec } = await client.get<EdgeNativeCloudConfig>(pathOf(''), ['spec'])
    const { ntpServers = [], sshKeys = [] } = spec.clusterConfig
    const linesOf = (items: readonly string[]) => (items.length === 0 ? ['none'] : items)
    await output.show({ ntpServers, sshKeys }, (paper) =>
      renderFacts(
        [
          { label: 'NTP servers', lines: linesOf(ntpServers) },
          { label: 'SSH keys', lines: linesOf(sshKeys.map(shortKey)) },
        ],
        paper,
      ),
    )
    return undefined
  }
  const reply = await sendChecked(context, 'PUT', pathOf('/clusterConfig'), { clusterConfig: body })
  noteChange(context, item, numberOf(reply))
  return undefined
}

const noteChange = ({ output }: Pick<Context, 'output'>, cluster: SpectroCluster, number: string) =>
  output.note(
    understand(() => {
      const name = oneLine(cluster.metadata.name)
      if (Number(number) === cluster.spec.number)
        return `Nothing is changed: the cluster ${name} has this already, as number ${number}.`
      const changed = `The cluster ${name} is changed, as number ${number}.`
      // The platform was restored from a backup.
      if (desiredOf(cluster)?.reason === 'NewerOnHost')
        return `${changed} The host ${oneLine(cluster.spec.edgeHost.name)} has accepted a later number than this platform knew, and leaves it alone until: ${program.ctl} cluster apply ${name}`
      return `${changed} ${whenHostActs(cluster, 'applies the change')}`
    }),
  )
