// A link is configured, made or deleted: checked by the host first, then tried with a way back.
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import type {
  Bond,
  BondRequest,
  Bridge,
  BridgeRequest,
  NetworkChangeAccepted,
  NetworkDryRun,
  NicRequest,
  NicSummary,
  Vlan,
  VlanRequest,
} from '../../../network/schemas.ts'
import { plain } from '../../shared/format.ts'
import { Confirm, Dialog, usePlan } from '../../shared/dialog.tsx'
import { Note, Problem, Tick, useAction } from '../../shared/parts.tsx'
import { useFound, useReading } from '../../shared/read.ts'
import { change, hostNow } from '../../shared/request.ts'
import { sharedText } from '../../shared/texts.ts'
import { networkPath, text } from '../host.tsx'

/** A person needs time: the certificate of the new address, another login, a look. */
const windowSeconds = 300

/** A change that this page has begun: the host may be at another address before it can say so here. */
export interface Begun {
  readonly uid: string
  readonly addresses: readonly string[]
  readonly isDhcp: boolean
  /** Time of the host, milliseconds since 1970. */
  readonly deadline: number
}
export const begun = signal<Begun | undefined>(undefined)

function noteBegun({ uid }: NetworkChangeAccepted, plan: NetworkDryRun | undefined, isDhcp: boolean): void {
  if (uid !== undefined)
    begun.value = {
      uid,
      addresses: plan?.reachableBy ?? [],
      isDhcp,
      deadline: hostNow() + windowSeconds * 1_000,
    }
}

/** A link of the host, with its sort. */
export type Link =
  | (NicSummary & { readonly sort: 'nic' | 'wifi' })
  | (Bond & { readonly sort: 'bond' })
  | (Vlan & { readonly sort: 'vlan' })
  | (Bridge & { readonly sort: 'bridge' })

/** Links that are made of others, so that they can be added and deleted. */
export const madeSorts = ['bond', 'vlan', 'bridge'] as const
export type MadeSort = (typeof madeSorts)[number]
export const isMade = (sort: Link['sort']): sort is MadeSort => madeSorts.some((each) => each === sort)

const pathOf = (sort: Link['sort'], name: string) =>
  isMade(sort) ? `${networkPath}/${sort}s/${name}` : `${networkPath}/interfaces/${name}/config`

type Addressing = 'dhcp' | 'static' | 'none'

interface Fields {
  readonly name: string
  readonly type: Addressing
  readonly ip: string
  readonly subnet: string
  readonly gateway: string
  readonly nameservers: string
  readonly mtu: string
  readonly members: readonly string[]
  readonly mode: string
  readonly parent: string
  readonly vlanID: string
  readonly stp: '' | 'on' | 'off'
  readonly dropAddress: boolean
}

const fieldsOf = (link: Link | undefined): Fields => ({
  name: link?.name ?? '',
  type: link?.type ?? (link ? 'static' : 'dhcp'),
  ip: link?.ip ?? '',
  subnet: link?.subnet ?? '',
  gateway: link?.gateway ?? '',
  nameservers: link?.nameservers.join(' ') ?? '',
  mtu: link ? String(link.mtu) : '',
  members: link && 'members' in link ? link.members : [],
  mode: link?.sort === 'bond' ? (link.mode ?? '') : '',
  parent: link?.sort === 'vlan' ? (link.parentName ?? '') : '',
  vlanID: link?.sort === 'vlan' ? link.vlanID : '',
  stp: link?.sort === 'bridge' && link.stpEnabled !== undefined ? (link.stpEnabled ? 'on' : 'off') : '',
  dropAddress: false,
})

interface LinkDialogProps {
  /** Absent: a new one is made. */
  readonly link: Link | undefined
  readonly sort: Link['sort']
  readonly others: readonly Link[]
  readonly onClose: () => void
}

/** Asks for what a link of this sort has, has the host check it, and begins the trial. */
export function LinkDialog({ link, sort, others, onClose }: LinkDialogProps) {
  const t = text.value.network
  const [fields, setFields] = useState(() => fieldsOf(link))
  const [plan, setPlan] = useFound<NetworkDryRun>(fields)
  const name = link?.name ?? (sort === 'vlan' ? `${fields.parent}.${fields.vlanID}` : fields.name)
  const write = <Reply,>(query: string) =>
    change<Reply>(
      link ? 'PUT' : 'POST',
      `${pathOf(sort, encodeURIComponent(name))}?${query}${fields.dropAddress ? '&dropAddress=true' : ''}`,
      requestFor(sort, link, fields, others),
    )
  const check = useAction(async () => setPlan(await write<NetworkDryRun>('dryRun=true')))
  const begin = useAction(
    async () =>
      noteBegun(await write<NetworkChangeAccepted>(`window=${windowSeconds}`), plan, fields.type === 'dhcp'),
    onClose,
  )
  const error = check.error ?? begin.error
  const isGood = plan?.problems.length === 0
  const set = (given: Partial<Fields>) => setFields({ ...fields, ...given })
  const input = (
    field: 'name' | 'ip' | 'subnet' | 'gateway' | 'nameservers' | 'mtu' | 'vlanID',
    title: string,
  ) => (
    <label class="field">
      <span>{title}</span>
      <input
        value={fields[field]}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={plan?.problems.some((problem) => problem.field === field)}
        onInput={(event) => set({ [field]: event.currentTarget.value })}
      />
    </label>
  )
  return (
    <Dialog title={link ? t.edit(link.name) : t.add(t.kinds[sort] ?? sort)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void (isGood ? begin.run() : check.run())
        }}
      >
        {!link && sort !== 'vlan' && input('name', t.name)}
        {sort === 'vlan' && !link && <Parent fields={fields} others={others} onSet={set} />}
        {sort === 'vlan' && !link && input('vlanID', t.vlanID)}
        {(sort === 'bond' || sort === 'bridge') && (
          <Members sort={sort} own={name} fields={fields} others={others} onSet={set} />
        )}
        {sort === 'bond' && <Mode fields={fields} onSet={set} />}
        {sort === 'bridge' && (
          <label class="field">
            <span>{t.stp}</span>
            <select
              value={fields.stp}
              onChange={({ currentTarget: { value } }) =>
                set({ stp: value === 'on' || value === 'off' ? value : '' })
              }
            >
              <option value="">{t.stpUnset}</option>
              <option value="on">{t.on}</option>
              <option value="off">{t.off}</option>
            </select>
          </label>
        )}
        <label class="field">
          <span>{t.type}</span>
          <select
            value={fields.type}
            onChange={({ currentTarget: { value } }) =>
              set({ type: value === 'dhcp' || value === 'none' ? value : 'static' })
            }
          >
            <option value="dhcp">{t.dhcp}</option>
            <option value="static">{t.static}</option>
            {(sort === 'bond' || sort === 'bridge') && <option value="none">{t.noAddress}</option>}
          </select>
        </label>
        {fields.type === 'static' && (
          <>
            {input('ip', t.ip)}
            {input('subnet', t.subnet)}
            {input('gateway', t.gateway)}
          </>
        )}
        {fields.type !== 'none' && input('nameservers', t.nameservers)}
        {input('mtu', t.mtu)}
        {plan && <Plan plan={plan} isDhcp={fields.type === 'dhcp'} />}
        {error && <Problem error={error} title={sharedText.value.notDone} />}
        <p class="dim">{t.tryLong}</p>
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {sharedText.value.cancel}
          </button>
          <button type="submit" class="primary" disabled={check.isBusy || begin.isBusy}>
            {isGood ? t.begin : t.check}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface PartProps {
  readonly fields: Fields
  readonly onSet: (given: Partial<Fields>) => void
}

function Parent({ fields, others, onSet }: PartProps & { readonly others: readonly Link[] }) {
  return (
    <label class="field">
      <span>{text.value.network.parent}</span>
      <select
        required
        value={fields.parent}
        onChange={(event) => onSet({ parent: event.currentTarget.value })}
      >
        <option value="" />
        {others
          .filter((each) => each.sort === 'nic' || each.sort === 'bond')
          .map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}
            </option>
          ))}
      </select>
    </label>
  )
}

interface MembersProps extends PartProps {
  readonly sort: 'bond' | 'bridge'
  readonly own: string
  readonly others: readonly Link[]
}

/** NICs for a bond; NICs, bonds and VLANs for a bridge. The host says which are taken. */
function Members({ sort, own, fields, others, onSet }: MembersProps) {
  const t = text.value.network
  const candidates = others.filter(
    (each) =>
      each.name !== own &&
      (each.sort === 'nic' || (sort === 'bridge' && isMade(each.sort) && each.sort !== 'bridge')),
  )
  const takesAddress = fields.members.some((member) =>
    others.some((each) => each.name === member && each.ip !== undefined && each.ip !== ''),
  )
  return (
    <fieldset class="field">
      <legend>{t.members}</legend>
      {candidates.map((each) => (
        <Tick
          key={each.name}
          isOn={fields.members.includes(each.name)}
          onChange={(isOn) =>
            onSet({
              members: isOn
                ? [...fields.members, each.name]
                : fields.members.filter((member) => member !== each.name),
            })
          }
        >
          {[each.name, each.ip].filter(Boolean).join(' · ')}
        </Tick>
      ))}
      {takesAddress && (
        <Tick isOn={fields.dropAddress} onChange={(dropAddress) => onSet({ dropAddress })}>
          {t.dropAddress}
        </Tick>
      )}
    </fieldset>
  )
}

function Mode({ fields, onSet }: PartProps) {
  const options = useReading<{ readonly bond: { readonly mode: readonly string[] } }>(
    `${networkPath}/config-options`,
    3_600_000,
  )
  return (
    <label class="field">
      <span>{text.value.network.mode}</span>
      <select value={fields.mode} onChange={(event) => onSet({ mode: event.currentTarget.value })}>
        <option value="">active-backup</option>
        {(options.body?.bond.mode ?? [fields.mode])
          .filter((mode) => mode !== '' && (mode !== 'active-backup' || fields.mode === mode))
          .map((mode) => (
            <option key={mode} value={mode}>
              {mode}
            </option>
          ))}
      </select>
    </label>
  )
}

type LinkRequest = NicRequest | BondRequest | VlanRequest | BridgeRequest

/** The whole request: PUT of a bond, VLAN or bridge replaces it, so what is not asked about stays as it is. */
function requestFor(
  sort: Link['sort'],
  link: Link | undefined,
  fields: Fields,
  others: readonly Link[],
): LinkRequest {
  const nameservers = fields.nameservers.split(/[\s,]+/).filter((each) => each !== '')
  const mtu = Number(fields.mtu)
  const { type } = fields
  const addressing = {
    ...(type === 'static' ? { ip: fields.ip, subnet: fields.subnet, gateway: fields.gateway } : {}),
    ...(String(nameservers) === String(link?.nameservers ?? []) ? {} : { nameservers }),
    ...(fields.mtu === '' || mtu === link?.mtu ? {} : { mtu }),
  }
  if (sort === 'bond') {
    const kept = link?.sort === 'bond' && link.mode === fields.mode ? link : undefined
    return {
      ...addressing,
      type,
      members: [...fields.members],
      ...(fields.mode === '' ? {} : { mode: fields.mode }),
      ...(kept?.miiMonitorSec === undefined ? {} : { miiMonitorSec: kept.miiMonitorSec }),
      ...(kept?.lacpTransmitRate === undefined ? {} : { lacpTransmitRate: kept.lacpTransmitRate }),
      ...(kept?.transmitHashPolicy === undefined ? {} : { transmitHashPolicy: kept.transmitHashPolicy }),
    }
  }
  if (sort === 'bridge')
    return {
      ...addressing,
      type,
      members: [...fields.members],
      ...(fields.stp === '' ? {} : { stpEnabled: fields.stp === 'on' }),
    }
  const own = type === 'none' ? 'dhcp' : type
  if (sort === 'vlan') {
    const isOnBond = others.some((each) => each.name === fields.parent && each.sort === 'bond')
    return {
      ...addressing,
      type: own,
      parentName: fields.parent,
      parentType: isOnBond ? 'bond' : 'nic',
      vlanID: fields.vlanID,
    }
  }
  return { ...addressing, type: own }
}

/** Shows what goes with a link, and begins the trial of its deletion. */
export function DeleteLink({ link, onClose }: { link: Link; onClose: () => void }) {
  const t = text.value.network
  const path = pathOf(link.sort, link.name)
  const { plan, error } = usePlan(path, () => change<NetworkDryRun>('DELETE', `${path}?dryRun=true`))
  return (
    <Confirm
      title={t.deleteTitle(link.name)}
      action={t.begin}
      isOff={plan?.problems.length !== 0}
      onConfirm={async () =>
        noteBegun(
          await change<NetworkChangeAccepted>('DELETE', `${path}?window=${windowSeconds}`),
          plan,
          false,
        )
      }
      onClose={onClose}
    >
      {error && <Problem error={error} />}
      {plan && <Plan plan={plan} isDhcp={false} />}
      <p class="dim">{t.tryLong}</p>
    </Confirm>
  )
}

function Plan({ plan, isDhcp }: { plan: NetworkDryRun; isDhcp: boolean }) {
  const t = text.value.network
  const { problems, warnings, lostRoutes, reachableBy } = plan
  if (problems.length > 0)
    return (
      <Note mood="bad">
        <ul>
          {problems.map(({ field, reason }) => (
            <li key={`${field} ${reason}`}>
              <strong>{field}</strong> {plain(reason)}
            </li>
          ))}
        </ul>
      </Note>
    )
  return (
    <Note mood={warnings.length + lostRoutes.length > 0 ? 'warning' : 'good'}>
      <p>{t.noProblems}</p>
      {warnings.map((warning) => (
        <p key={warning}>{plain(warning)}</p>
      ))}
      {lostRoutes.length > 0 && (
        <p>
          {t.lostRoutes}: {lostRoutes.map(plain).join(', ')}
        </p>
      )}
      {reachableBy.length > 0 && <p>{t.reachableBy(reachableBy.join(', '))}</p>}
      {isDhcp && <p>{t.unknownAddress}</p>}
    </Note>
  )
}
