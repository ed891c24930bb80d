import { program } from '../../base/program.ts'
import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { understand } from '../../ctl/reply.ts'
import { readKeys, shortKey } from '../../ctl/ssh-keys.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { oneLine } from '../../ctl/text.ts'
import type { EdgeNativeCloudConfig } from '../schemas/cloud-configs.ts'
import type { ClusterProfileList, ClusterVariables, SpectroCluster } from '../schemas/clusters.ts'
import { findProfiles } from './create-clusters.ts'
import { findCluster, wantedOf, whenHostActs } from './find-cluster.ts'
import { byProfile, hasValues, readGivenOf, valuesForProfiles } from './given-for-profiles.ts'
import { queryOf } from './scopes.ts'
import { numberOf, sendChecked } from './send-checked.ts'

type Variable = ClusterVariables[number]['variables'][number]

const valueLayout: readonly Column<{ readonly profile: string; readonly variable: Variable }>[] = [
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
      ...{ uid, variables },
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
      if (wantedOf(cluster)?.reason === 'NewerOnHost')
        return `${changed} The host ${oneLine(cluster.spec.edgeHost.name)} has accepted a later number than this platform knew, and leaves it alone until: ${program.ctl} cluster apply ${name}`
      return `${changed} ${whenHostActs(cluster, 'applies the change')}`
    }),
  )
