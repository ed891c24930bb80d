import { useState } from 'preact/hooks'
import type { Inventory } from '../../../inventory/schemas.ts'
import type { HostActions, StopAccepted } from '../../../power/schemas.ts'
import type { ServiceStatus } from '../../../service/schemas.ts'
import { bytes, day, plain, span } from '../../shared/format.ts'
import { Confirm, DangerZone } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Card,
  Command,
  Entry,
  Facts,
  Fingerprint,
  Note,
  OnlyAdministrators,
  PageHeader,
  Problem,
  Shown,
  TabPages,
  Tick,
  useAction,
  useSeconds,
} from '../../shared/parts.tsx'
import { useReading } from '../../shared/read.ts'
import { change, hostNow, isReachable } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { placeParts } from '../../shared/shell.tsx'
import { sharedText } from '../../shared/texts.ts'
import { hostPath, remote, text } from '../host.tsx'
import { Configuration } from './system-configuration.tsx'
import { Diagnosis } from './system-diagnosis.tsx'
import { Reset } from './system-reset.tsx'

/** The pages of the system, by what follows `#/system/`. */
export function System() {
  const t = text.value.system
  const [part = ''] = placeParts.value
  const tabs = [
    { path: '', title: t.title, view: Machine },
    { path: 'configuration', title: text.value.configuration.title, view: Configuration },
    { path: 'diagnosis', title: text.value.diagnosis.title, view: Diagnosis },
  ] as const
  return <TabPages label={t.title} tabs={tabs} current={part} base="#/system" />
}

function Machine() {
  const t = text.value.system
  return (
    <>
      <PageHeader title={t.title} />
      {isAdmin.value ? (
        <div class="grid">
          <Service />
          <Hardware />
        </div>
      ) : (
        <OnlyAdministrators />
      )}
      <Power />
      <Reset />
      <Command command={remote('host reboot')} />
    </>
  )
}

function Service() {
  const t = text.value.system
  const status = useReading<ServiceStatus>(`${hostPath}/status`, 15_000)
  return (
    <Card title={t.daemon} icon="system" width="half">
      <Shown reading={status} lines={6}>
        {({ version, startTimestamp, uptimeSeconds, addresses, port, certificate, state }) => (
          <Facts
            facts={[
              [text.value.overview.version, version],
              [t.started, `${day(startTimestamp)} (${span(uptimeSeconds)})`],
              [t.addresses, addresses.map((address) => `${address}:${port}`).join(', ')],
              [t.stateDisk, sharedText.value.machine.freeOf(bytes(state.freeBytes), bytes(state.totalBytes))],
              [t.fingerprint, <Fingerprint text={certificate.fingerprint} />],
              [t.until, day(certificate.expirationTimestamp)],
              [t.own, certificate.isOwn ? t.ownHost : t.ownAdministrator],
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

function Hardware() {
  const t = text.value.system
  const inventory = useReading<Inventory>(`${hostPath}/inventory`, 300_000)
  return (
    <Card title={t.inventory} icon="host" width="half">
      <Shown reading={inventory} lines={6}>
        {({ system, processor }) => (
          <Facts
            facts={[
              [t.manufacturer, system?.manufacturer && plain(system.manufacturer)],
              [text.value.overview.model, system?.model && plain(system.model)],
              [t.serial, system?.serial && plain(system.serial)],
              [text.value.overview.processor, processor?.brand && plain(processor.brand)],
            ]}
          />
        )}
      </Shown>
    </Card>
  )
}

/** A stop that this page has asked for; the page waits for the host then. */
interface Going {
  readonly action: 'reboot' | 'shutdown'
  readonly since: number
}

function Power() {
  const t = text.value.system
  const actions = useReading<HostActions>(`${hostPath}/actions`, 15_000)
  const [asked, setAsked] = useState<'reboot' | 'shutdown'>()
  const [going, setGoing] = useState<Going>()
  const [reason, setReason] = useState('')
  const [isForced, setForced] = useState(false)
  const [at, setAt] = useState('')
  const now = useSeconds(going !== undefined)
  async function stop(action: 'reboot' | 'shutdown') {
    const query = new URLSearchParams({
      ...(reason === '' ? {} : { message: reason }),
      ...(isForced ? { force: 'true' } : {}),
      ...(at === '' ? {} : { at: new Date(at).toISOString() }),
    })
    await change<StopAccepted>('POST', `${hostPath}/actions/${action}?${query.toString()}`)
    if (at === '') setGoing({ action, since: hostNow() })
    else actions.again()
  }
  if (going && !(isReachable.value && now - going.since > 20_000))
    return (
      <Note mood="info">
        <strong role="status">{going.action === 'reboot' ? t.goes : t.off}</strong>
        <p>{going.action === 'reboot' ? t.goesLong(span((now - going.since) / 1_000)) : t.offLong}</p>
      </Note>
    )
  const [planned] = actions.body?.items ?? []
  const last = actions.body?.last
  return (
    <DangerZone title={t.power}>
      <Facts
        facts={[
          planned && [t.planned, describe(planned)],
          last && [t.last, describe(last)],
          actions.body?.boot && ['', plain(actions.body.boot.message)],
        ]}
      />
      {planned?.state === 'planned' && (
        <CancelStop
          uid={planned.uid}
          onDone={() => {
            actions.again()
          }}
        />
      )}
      <div class="row">
        <p class="dim">{t.rebootLong}</p>
        <div class="buttons">
          <AdminButton kind="danger outline" onClick={() => setAsked('reboot')}>
            {t.reboot}…
          </AdminButton>
          <AdminButton kind="danger outline" onClick={() => setAsked('shutdown')}>
            {t.shutdown}…
          </AdminButton>
        </div>
      </div>
      {asked && (
        <Confirm
          title={asked === 'reboot' ? t.reboot : t.shutdown}
          action={asked === 'reboot' ? t.reboot : t.shutdown}
          onConfirm={() => stop(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>{asked === 'reboot' ? t.rebootLong : t.shutdownLong}</p>
          <Entry label={t.reason} value={reason} onChange={setReason} maxLength={200} />
          <Entry label={t.at} type="datetime-local" value={at} onChange={setAt} hint={t.atLong} />
          <Tick isOn={isForced} onChange={setForced}>
            {t.force}
          </Tick>
        </Confirm>
      )}
    </DangerZone>
  )
}

function CancelStop({ uid, onDone }: { uid: string; onDone: () => void }) {
  const action = useAction(() => change('DELETE', `${hostPath}/actions/${uid}`), onDone)
  return (
    <div class="row">
      {action.error && <Problem error={action.error} title={sharedText.value.notDone} />}
      <AdminButton isOff={action.isBusy} onClick={() => void action.run()}>
        {text.value.system.cancelStop}
      </AdminButton>
    </div>
  )
}

function describe({
  action,
  state,
  message,
  reason,
  by,
  creationTimestamp,
  atTimestamp,
}: NonNullable<HostActions['last']>) {
  return [action, state, by, day(atTimestamp ?? creationTimestamp), plain(message), plain(reason ?? '')]
    .filter(Boolean)
    .join(' · ')
}
