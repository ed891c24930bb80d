import { useState } from 'preact/hooks'
import type { HostActions, ResetPlan } from '../../../power/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Confirm, DangerZone, usePlan } from '../../shared/dialog.tsx'
import { AdminButton, Note, Problem, Tick } from '../../shared/parts.tsx'
import { useReading } from '../../shared/read.ts'
import { change } from '../../shared/request.ts'
import { hostPath, text } from '../host.tsx'

const wiped = ['network', 'configuration', 'identity'] as const
type Wiped = (typeof wiped)[number]

/** The host as before its first use: what goes is shown first, and its name is typed. */
export function Reset() {
  const t = text.value.reset
  const actions = useReading<HostActions>(`${hostPath}/actions`, 10_000)
  const [isAsking, setAsking] = useState(false)
  const reset = actions.body?.reset
  const isUnderWay = reset?.phase !== undefined
  return (
    <DangerZone title={t.title}>
      {reset && (
        <Note mood={reset.reason === undefined ? 'info' : 'bad'}>
          <p role="status">
            {isUnderWay
              ? t.underWay(reset.phase ?? '')
              : t.last(day(reset.endTimestamp ?? reset.creationTimestamp), plain(reset.by))}
          </p>
          {reset.reason !== undefined && <p>{plain(reset.reason)}</p>}
        </Note>
      )}
      <div class="row">
        <p class="dim">{t.long}</p>
        <AdminButton kind="danger outline" isOff={isUnderWay} onClick={() => setAsking(true)}>
          {t.title}…
        </AdminButton>
      </div>
      {isAsking && (
        <ResetDialog
          onClose={() => {
            setAsking(false)
            actions.again()
          }}
        />
      )}
    </DangerZone>
  )
}

function ResetDialog({ onClose }: { onClose: () => void }) {
  const t = text.value.reset
  const [keepsContent, setKeepsContent] = useState(false)
  const [wipes, setWipes] = useState<readonly Wiped[]>([])
  const [isForced, setForced] = useState(false)
  const query = new URLSearchParams({
    ...(keepsContent ? { keep: 'content' } : {}),
    ...(wipes.length === 0 ? {} : { wipe: wipes.join(',') }),
    ...(isForced ? { force: 'true' } : {}),
  }).toString()
  const path = `${hostPath}/actions/reset?${query}`
  const { plan, error } = usePlan(path, () => change<ResetPlan>('POST', `${path}&dryRun=true`, {}))
  const hostName = plan?.hostName ?? ''
  return (
    <Confirm
      title={t.title}
      action={t.title}
      name={hostName}
      isOff={!plan || (plan.problems.length > 0 && !isForced)}
      onConfirm={() => change('POST', path, { hostName })}
      onClose={onClose}
    >
      <fieldset class="field">
        <legend class="hidden">{t.parts}</legend>
        <Tick isOn={keepsContent} onChange={setKeepsContent}>
          {t.keepContent}
        </Tick>
        {wiped.map((part) => (
          <div key={part}>
            <Tick
              isOn={wipes.includes(part)}
              onChange={(isOn) =>
                setWipes(wiped.filter((each) => (each === part ? isOn : wipes.includes(each))))
              }
            >
              {t.wipes[part]}
            </Tick>
          </div>
        ))}
      </fieldset>
      {error && <Problem error={error} />}
      {plan && (
        <>
          <h3>{t.removes}</h3>
          <ul class="plain-list">
            {plan.removes
              .filter(({ items }) => items.length > 0)
              .map(({ phase, items }) => (
                <li key={phase}>
                  <strong>{t.phases[phase] ?? phase}</strong>: {items.map(plain).join(', ')}
                </li>
              ))}
          </ul>
          <h3>{t.stays}</h3>
          <p>{plan.stays.map(plain).join(', ')}</p>
          {plan.problems.length > 0 && (
            <Note mood="bad">
              <ul>
                {plan.problems.map((problem) => (
                  <li key={problem}>{plain(problem)}</li>
                ))}
              </ul>
              <Tick isOn={isForced} onChange={setForced}>
                {t.force}
              </Tick>
            </Note>
          )}
        </>
      )}
    </Confirm>
  )
}
