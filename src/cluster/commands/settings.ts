import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Fact } from '../../ctl/facts.ts'
import { readKeys, shortKey } from '../../ctl/ssh-keys.ts'
import { plural } from '../../ctl/text.ts'
import type { ClusterDetails } from '../schemas.ts'
import { readPresent, tryChange, type Order } from './change-host.ts'
import { performChange, requireYes } from './perform-change.ts'
import { requireDetails } from '../../ctl/cluster-details.ts'

type SettingsContext = Context<'ntp' | 'ssh-key' | 'none' | 'yes' | 'no-wait'>

/** `edgehostctl cluster settings`: shows the settings, or replaces them as a whole. */
export async function clusterSettings(context: SettingsContext): Promise<'failed' | undefined> {
  const { line } = context
  const { lists = {}, options } = line
  const { ntp, 'ssh-key': keyFiles } = lists
  const isNone = options.none !== undefined
  if (isNone && (ntp ?? keyFiles) !== undefined)
    throw new Failure('usage', '--none takes all of them away; leave out --ntp and --ssh-key')
  if (!isNone && (ntp ?? keyFiles) === undefined) {
    const given = (['yes', 'no-wait'] as const).find((name) => options[name] !== undefined)
    if (given !== undefined)
      throw new Failure('usage', `--${given} is for a change: add --ntp SERVER, --ssh-key FILE or --none`)
    return showSettings(context)
  }
  const body = { ntpServers: ntp ?? [], sshKeys: (keyFiles ?? []).flatMap(readKeys) }
  requireYes(context)
  const present = await readPresent(context)
  const order: Order = { method: 'PUT', path: '/settings', body }
  const found = await tryChange(context, order, present.etag)
  const { ntpServers, sshKeys } = body
  return performChange(context, present, {
    ...{ order, found, hints: [] },
    what: `From then on the cluster has ${plural(ntpServers.length, 'NTP server')} and ${plural(sshKeys.length, 'SSH key')} for this host; what is not named is taken away.`,
  })
}

async function showSettings(context: SettingsContext): Promise<undefined> {
  const { spec, status } = await requireDetails(context)
  const { ntpServers, sshKeys } = spec
  const { ntpServersApplied, sshKeysApplied } = status
  const settings = { ntpServers, sshKeys, ntpServersApplied, sshKeysApplied }
  const reasonOf = (type: string) =>
    status.clusterConditions.find((each) => each.type === type && each.status === 'False')?.message
  const reasons = { ntpServers: reasonOf('NtpServersApplied'), sshKeys: reasonOf('SshKeysApplied') }
  await context.output.show(settings, (paper) => renderFacts(factsOf(settings, reasons), paper))
  return undefined
}

type Shown = Pick<ClusterDetails['spec'], 'ntpServers' | 'sshKeys'> &
  Pick<ClusterDetails['status'], 'ntpServersApplied' | 'sshKeysApplied'>

/** Why a setting is not applied; undefined where that is not said. */
type Reasons = Readonly<Record<'ntpServers' | 'sshKeys', string | undefined>>

const factsOf = (
  { ntpServers, sshKeys, ntpServersApplied, sshKeysApplied }: Shown,
  reasons: Reasons,
): Fact[] => [
  factOf('NTP servers', ntpServers, ntpServersApplied, reasons.ntpServers),
  factOf('SSH keys', sshKeys.map(shortKey), sshKeysApplied, reasons.sshKeys),
]

function factOf(label: string, items: readonly string[], isApplied: boolean, reason?: string): Fact {
  const lines = items.length === 0 ? ['none'] : items
  if (isApplied || (items.length === 0 && reason === undefined))
    return items.length === 0 ? { label, lines } : { label, lines, mood: 'good' }
  const why = reason === undefined ? 'not applied yet: edgehostctl cluster watch' : `not applied: ${reason}`
  return { label, lines: [...lines, why], mood: 'warning' }
}
