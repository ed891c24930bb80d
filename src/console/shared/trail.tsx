import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { AuditView, VerifyReply } from '../../audit/schemas.ts'
import { plain } from './format.ts'
import { AdminButton, Badge, Problem, useAction, type Mood } from './parts.tsx'
import { get } from './request.ts'
import { sharedText } from './texts.ts'

interface VerifyTrailProps {
  /** Path of the verification. */
  readonly path: string
  /** Further buttons. */
  readonly children?: ComponentChildren
}

/** Has the audit trail verified from its first record, and says what was found. */
export function VerifyTrail({ path, children }: VerifyTrailProps) {
  const t = sharedText.value
  const [result, setResult] = useState<Static<typeof VerifyReply>>()
  const { run, isBusy, error } = useAction(async () => setResult(await get(path)))
  return (
    <div class="row">
      <div role="status">
        {result &&
          (result.isIntact ? (
            <Badge mood="good">{t.trailIntact(result.count)}</Badge>
          ) : (
            <Badge mood="bad">
              {t.trailBroken}: {plain(result.problem?.message ?? '')}
            </Badge>
          ))}
        {error && <Problem error={error} />}
      </div>
      <div class="buttons">
        <AdminButton isOff={isBusy} onClick={() => void run()}>
          {t.verify}
        </AdminButton>
        {children}
      </div>
    </div>
  )
}

type Outcome = AuditView['spec']['outcome']

const moods: Readonly<Record<Outcome, Mood>> = {
  success: 'good',
  refused: 'warning',
  failed: 'bad',
  unknown: 'warning',
}

/** What became of the action of a record. */
export const OutcomeBadge = ({ outcome }: { outcome: Outcome }) => (
  <Badge mood={moods[outcome]}>{sharedText.value.outcomes[outcome]}</Badge>
)

const longestMessage = 200

/** What a record says was done. One with many changes begins closed. */
export function RecordMessage({ message, children }: { message: string; children: ComponentChildren }) {
  const shown = plain(message)
  const begin = shown.slice(0, longestMessage)
  if (begin === shown)
    return (
      <>
        {shown} <span class="dim">{children}</span>
      </>
    )
  return (
    <details>
      <summary>
        {begin.slice(0, begin.lastIndexOf(' '))}… <span class="dim">{children}</span>
      </summary>
      {shown}
    </details>
  )
}
