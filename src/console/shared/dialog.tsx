import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { AdminButton, Problem, useAction } from './parts.tsx'
import { RequestError } from './request.ts'
import { sharedText } from './texts.ts'

interface DialogProps {
  readonly title: string
  /** Without it the dialog cannot be closed. */
  readonly onClose?: () => void
  readonly children: ComponentChildren
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  // There may be another one: the session ends while it is asked for something.
  const titleId = useId()
  useEffect(() => {
    const opener = document.activeElement
    ref.current?.showModal()
    return () => {
      ref.current?.close()
      // The element may be drawn anew in the same turn.
      setTimeout(() => {
        if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
      })
    }
  }, [])
  return (
    <dialog
      ref={ref}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose?.()
      }}
      // A browser closes it at the second Escape in a row, whatever is said to the first one.
      onClose={({ currentTarget }) => {
        if (onClose) onClose()
        else if (currentTarget.isConnected) currentTarget.showModal()
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  /** What is lost and what stays. */
  readonly children: ComponentChildren
  readonly action: string
  /** The name that has to be typed, where data is lost. */
  readonly name?: string
  /** What is done is not known yet, or cannot be done. */
  readonly isOff?: boolean
  /** The dialog closes when it has succeeded. */
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
}

/** Asks before an action that loses something. A refusal is shown in the dialog. */
export function Confirm({ title, children, action, name, isOff = false, onConfirm, onClose }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const t = sharedText.value
  const { run, isBusy, error } = useAction(onConfirm, onClose)
  const isConfirmed = !isOff && (name === undefined || typed === name)
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (isConfirmed) void run()
        }}
      >
        {children}
        {error && <Problem error={error} title={t.notDone} />}
        {name !== undefined && (
          <label class="field">
            <span>{t.typeName(name)}</span>
            <input
              value={typed}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="submit" class="danger" disabled={!isConfirmed || isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface Planned<Plan> {
  readonly plan?: Plan
  readonly error?: RequestError
}

/**
 * Has the host say what an action would do, before it is confirmed: at once, and anew for another request. What an earlier request has found is never
 * shown for a later one.
 * @param request names it
 */
export function usePlan<Plan>(request: string, read: () => Promise<Plan>): Planned<Plan> {
  const [held, setHeld] = useState<Planned<Plan> & { readonly request?: string }>({})
  useEffect(() => {
    let isOver = false
    const keep = (planned: Planned<Plan>) => {
      if (!isOver) setHeld({ request, ...planned })
    }
    void read().then(
      (plan) => keep({ plan }),
      (error: unknown) => {
        if (!(error instanceof RequestError)) throw error
        keep({ error })
      },
    )
    return () => {
      isOver = true
    }
  }, [request])
  return held.request === request ? held : {}
}

/** What loses something, at the end of its page. */
export const DangerZone = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section class="card danger-zone">
    <header>
      <h2>{title}</h2>
    </header>
    {children}
  </section>
)

interface DangerActionProps {
  readonly title: string
  /** What is lost and what stays; beside the button, and in the dialog. */
  readonly lost: string
  /** Typed to confirm. */
  readonly name: string
  readonly isOff?: boolean
  /** Called before it is asked; where it fails, it is not asked. */
  readonly onAsk?: () => unknown
  readonly onConfirm: () => Promise<unknown>
  readonly onClose?: () => void
  /** Choices in the dialog. */
  readonly children?: ComponentChildren
}

/** A button in a danger zone, and the dialog that asks for the name of what goes. */
export function DangerAction(props: DangerActionProps) {
  const { title, lost, name, isOff = false, onAsk, onConfirm, onClose, children } = props
  const [isAsking, setAsking] = useState(false)
  const ask = useAction(async () => {
    await onAsk?.()
    setAsking(true)
  })
  return (
    <>
      <div class="row">
        <p class="dim">{lost}</p>
        <AdminButton kind="danger outline" isOff={isOff || ask.isBusy} onClick={() => void ask.run()}>
          {title}…
        </AdminButton>
      </div>
      {ask.error && <Problem error={ask.error} />}
      {isAsking && (
        <Confirm
          title={title}
          action={title}
          name={name}
          onConfirm={onConfirm}
          onClose={() => {
            setAsking(false)
            onClose?.()
          }}
        >
          <p>{lost}</p>
          {children}
        </Confirm>
      )}
    </>
  )
}
