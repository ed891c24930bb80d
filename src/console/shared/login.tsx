import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { plain } from './format.ts'
import { Icon } from './icon.tsx'
import { open, RequestError } from './request.ts'
import { logIn, sessionProtocol } from './session.ts'
import { languages, locale, setLanguage } from './text.ts'
import { sharedText } from './texts.ts'

/** Seconds until a time of this device, counted down; 0 where there is none. */
function useCountdown(until: number): number {
  const left = () => Math.max(0, Math.ceil((until - Date.now()) / 1_000))
  const [seconds, setSeconds] = useState(left())
  useEffect(() => {
    setSeconds(left())
    if (left() === 0) return undefined
    const timer = setInterval(() => setSeconds(left()), 250)
    return () => clearInterval(timer)
  }, [until])
  return seconds
}

/** @param name the user whose session has ended, who alone may go on */
export function LoginForm({ name }: { name?: string }) {
  const t = sharedText.value
  const [problem, setProblem] = useState<RequestError>()
  const [isBusy, setBusy] = useState(false)
  const [isShown, setShown] = useState(false)
  const [until, setUntil] = useState(0)
  const left = useCountdown(until)
  const alert = useRef<HTMLDivElement>(null)
  const { wrongCode, replacePassword } = sessionProtocol()
  const isExpired = problem?.code === 'PasswordExpired' && replacePassword !== undefined
  const isWrong = problem?.code === wrongCode

  async function submit(form: HTMLFormElement): Promise<void> {
    const given = new FormData(form)
    const of = (key: string) => {
      const value = given.get(key)
      return typeof value === 'string' ? value : ''
    }
    setBusy(true)
    try {
      if (isExpired) {
        const { path, ...options } = replacePassword(of('username'), of('password'), of('new'))
        await open(path, options)
      }
      await logIn(of('username'), of(isExpired ? 'new' : 'password'))
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      setProblem(error)
      setUntil(error.retryAfterSeconds > 0 ? Date.now() + error.retryAfterSeconds * 1_000 : 0)
      const field = form.elements.namedItem('password')
      if (error.code === wrongCode && field instanceof HTMLInputElement) {
        field.value = ''
        field.focus()
      } else setTimeout(() => alert.current?.focus())
    } finally {
      setBusy(false)
    }
  }

  const isLocked = left > 0 && problem?.status === 429
  // The countdown is over: nothing hinders the next try.
  const message = problem?.status === 429 && !isLocked ? undefined : problem && messageOf(problem, left)
  return (
    <form
      class="login"
      onSubmit={(event) => {
        event.preventDefault()
        void submit(event.currentTarget)
      }}
    >
      {message !== undefined && (
        <div class={`note ${isExpired ? 'warning' : 'bad'}`} role="alert" tabIndex={-1} ref={alert}>
          <Icon name={isExpired ? 'warning' : 'bad'} />
          <p>{message}</p>
        </div>
      )}
      <label class="field">
        <span>{t.user}</span>
        <input
          name="username"
          autocomplete="username"
          autocapitalize="off"
          spellcheck={false}
          required
          defaultValue={name ?? ''}
          readOnly={name !== undefined}
          aria-invalid={isWrong}
          autofocus={name === undefined}
        />
      </label>
      <div class="field">
        <label for="password">{t.password}</label>
        <div class="with-button">
          <input
            id="password"
            name="password"
            {...(isShown ? ({ type: 'text' } as const) : ({ type: 'password' } as const))}
            autocomplete="current-password"
            required
            autofocus={name !== undefined}
          />
          <button type="button" class="plain" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
            {isShown ? t.hide : t.show}
          </button>
        </div>
      </div>
      {isExpired && (
        <label class="field">
          <span>{t.newPassword}</span>
          <input name="new" type="password" autocomplete="new-password" required />
        </label>
      )}
      <button type="submit" class="primary wide" disabled={isBusy || isLocked}>
        {isBusy ? t.loggingIn : isExpired ? t.setPassword : t.logIn}
      </button>
    </form>
  )
}

function messageOf({ status, code, message }: RequestError, left: number): string {
  const t = sharedText.value
  if (status === 0) return t.unreachable
  if (code === sessionProtocol().wrongCode) return t.wrongLogin
  if (code === 'PasswordExpired') return t.expired
  return status === 429 ? t.wait(left) : plain(message)
}

export const LanguageChoice = () => (
  <label class="language">
    <span class="hidden">{sharedText.value.language}</span>
    <select value={locale.value} onChange={(event) => setLanguage(event.currentTarget.value)}>
      {Object.entries(languages).map(([name, title]) => (
        <option key={name} value={name}>
          {title}
        </option>
      ))}
    </select>
  </label>
)

/** The page before the login; its children say how to know that this is the right host. */
export const LoginPage = ({ hint, children }: { hint: string; children: ComponentChildren }) => (
  <main class="login-page" id="main">
    <div class="panel">
      <img src="/console/icon.svg" width="40" height="40" alt="" />
      <h1>{location.hostname}</h1>
      <p class="dim">{hint}</p>
      <LoginForm />
      {children}
    </div>
    <LanguageChoice />
  </main>
)
