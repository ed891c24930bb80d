import { useState } from 'preact/hooks'
import { LanguageChoice } from '../../shared/login.tsx'
import { ChangeForm, Entry, Note, useAction } from '../../shared/parts.tsx'
import { send, refusalOf } from '../../shared/request.ts'
import { placeParts } from '../../shared/shell.tsx'
import { sharedText } from '../../shared/texts.ts'
import { text } from '../platform.ts'

/** Sends a change that needs no session. @throws RequestError */
async function changeOpen(method: 'POST' | 'PATCH', path: string, body: object): Promise<void> {
  const reply = await send(path, { method, body, timeoutMs: 60_000 })
  if (!reply.ok) throw await refusalOf(reply)
}

/** The token in a link of this page, or of the API as edgeplatformctl prints it; empty in another text. */
const tokenIn = (link: string): string =>
  /\/password\/([\w.~-]+)(?:\/activate)?$/.exec(link.trim())?.[1] ?? ''

/** The page of a link to set a password: `#/password/TOKEN`; without the token the link is pasted. What stands behind `#` is in no log. */
export function SetPassword() {
  const t = text.value.password
  const [inAddress = ''] = placeParts.value
  const [pasted, setPasted] = useState('')
  const token = inAddress === '' ? tokenIn(pasted) : inAddress
  const [fresh, setFresh] = useState('')
  const [again, setAgain] = useState('')
  const [isDone, setDone] = useState(false)
  const action = useAction(
    () => changeOpen('PATCH', `/v1/auth/password/${encodeURIComponent(token)}/activate`, { password: fresh }),
    () => setDone(true),
  )
  const differ = again !== '' && again !== fresh
  return (
    <main class="login-page" id="main">
      <div class="panel">
        <img src="/console/icon.svg" width="40" height="40" alt="" />
        <h1>{t.title}</h1>
        {isDone ? (
          <>
            <Note mood="good">
              <p role="status">{t.done}</p>
            </Note>
            <a class="button primary" href="#/">
              {t.toLogin}
            </a>
          </>
        ) : (
          <ChangeForm
            action={action}
            submit={sharedText.value.setPassword}
            isOff={token === '' || fresh.length < 12 || fresh !== again}
          >
            <p class="dim">{t.long}</p>
            {inAddress === '' && <Entry label={t.link} value={pasted} onChange={setPasted} isRequired />}
            <Entry
              label={sharedText.value.newPassword}
              type="password"
              value={fresh}
              onChange={setFresh}
              isRequired
            />
            <Entry label={t.repeat} type="password" value={again} onChange={setAgain} isRequired />
            <p role="status">{differ && t.differ}</p>
          </ChangeForm>
        )}
      </div>
      <LanguageChoice />
    </main>
  )
}

/** Below the login: tells the administrators that a user needs a link. */
export function AskForLink() {
  const t = text.value.login
  const [email, setEmail] = useState('')
  const [isAsked, setAsked] = useState(false)
  const action = useAction(
    () => changeOpen('POST', '/v1/auth/user/password/reset', { emailId: email }),
    () => setAsked(true),
  )
  return (
    <details>
      <summary>{t.forgotten}</summary>
      <p>
        <a href="#/password">{t.haveLink}</a>
      </p>
      <p>{t.forgottenLong}</p>
      {isAsked ? (
        <Note mood="good">
          <p role="status">{t.asked}</p>
        </Note>
      ) : (
        <ChangeForm action={action} submit={t.ask} isOff={email === ''}>
          <Entry label={text.value.users.email} type="email" value={email} onChange={setEmail} isRequired />
        </ChangeForm>
      )}
    </details>
  )
}
